// SPDX-License-Identifier: Apache-2.0

package credentials

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonProviderUnknown = "ProviderUnknown"
	reasonAnotherURL      = "AnotherURL"
)

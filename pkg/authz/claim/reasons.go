// SPDX-License-Identifier: Apache-2.0

package claim

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonInvalidURL         = "InvalidURL"
	reasonRepositoryVanished = "RepositoryVanished"
)

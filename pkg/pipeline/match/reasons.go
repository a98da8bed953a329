// SPDX-License-Identifier: Apache-2.0

package match

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonBadAnnotation = "BadAnnotation"
	reasonBadPattern    = "BadPattern"
)

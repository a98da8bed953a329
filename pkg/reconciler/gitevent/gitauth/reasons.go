// SPDX-License-Identifier: Apache-2.0

package gitauth

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonForeignSecret = "ForeignSecret"
	reasonNotCovered    = "TokenScopeNotCovered"
)

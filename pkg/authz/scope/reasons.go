// SPDX-License-Identifier: Apache-2.0

package scope

// The reasons of faults. docs/reasons.md lists each with what it says.
const (
	// ReasonRefused is the reason of a Repository that lists other repositories without being
	// allowed to.
	ReasonRefused        = "TokenScopeRefused"
	reasonNotInNamespace = "TokenScopeNotInNamespace"
	reasonBadGlob        = "BadTokenScope"
	reasonTooMany        = "TokenScopeTooLarge"
	reasonNotListed      = "NotListed"
)

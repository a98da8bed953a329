// SPDX-License-Identifier: Apache-2.0

package glob

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonBadExpression = "BadExpression"
	reasonBadPattern    = "BadPattern"
)

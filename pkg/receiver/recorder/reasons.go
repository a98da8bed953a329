// SPDX-License-Identifier: Apache-2.0

package recorder

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	// ReasonForeignEvent is the reason when another delivery has the name of this one.
	ReasonForeignEvent    = "ForeignEvent"
	reasonNameRace        = "NameRace"
	reasonRedeliveryLimit = "RedeliveryLimit"
)

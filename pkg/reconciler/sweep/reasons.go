// SPDX-License-Identifier: Apache-2.0

package sweep

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonNextSweep           = "NextSweep"
	reasonNoEvent             = "NoEvent"
	reasonSweepGoesOn         = "SweepGoesOn"
	reasonSweepPauses         = "SweepPauses"
	reasonTombstonePageExists = "TombstonePageExists"
)

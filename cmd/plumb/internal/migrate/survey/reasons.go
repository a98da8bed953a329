// SPDX-License-Identifier: Apache-2.0

package survey

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonUnknown = "NotKnownHere"
)

// What is wrong with a pipeline, in addition to the reasons of the planner.
const (
	mistakeAbsent  = "Absent"
	mistakeRefused = "WouldBeRefused"
	mistakeEnded   = "Ended"
)

// SPDX-License-Identifier: Apache-2.0

package attempt

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonPending = "Pending"
)

// ReasonAttemptFailed is the reason of the wait for another attempt of a run that the cluster made
// fail.
const ReasonAttemptFailed = "AttemptFailed"

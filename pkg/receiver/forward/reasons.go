// SPDX-License-Identifier: Apache-2.0

package forward

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	// ReasonLoop is the reason of a request that came back to a receiver.
	ReasonLoop        = "ForwardingLoop"
	reasonBusy        = "PipelinesAsCodeBusy"
	reasonUnavailable = "PipelinesAsCodeUnavailable"
	reasonUnknown     = "PipelinesAsCodeUnknown"
)

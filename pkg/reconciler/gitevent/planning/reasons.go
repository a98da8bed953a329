// SPDX-License-Identifier: Apache-2.0

package planning

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonApprovalRemembered = "ApprovalRemembered"
	reasonApproved           = "Approved"
	reasonBadPayload         = "BadPayload"
	reasonTokenExpires       = "TokenExpires"
	reasonTokenValid         = "TokenValid"
)

// SPDX-License-Identifier: Apache-2.0

package delivery

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonBadPayload        = "BadPayload"
	reasonBot               = "Bot"
	reasonDeleted           = "Deleted"
	reasonNotAPullRequest   = "NotAPullRequest"
	reasonNotTheAuthor      = "NotTheAuthor"
	reasonPullRequestClosed = "PullRequestClosed"
	reasonUnknownCheck      = "UnknownCheck"
	reasonUnsupportedAction = "UnsupportedAction"
	reasonUnsupportedEvent  = "UnsupportedEvent"
	reasonUnsupportedRef    = "UnsupportedRef"
)

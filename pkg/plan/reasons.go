// SPDX-License-Identifier: Apache-2.0

package plan

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonBadName           = "BadName"
	reasonCancelRequested   = "CancelRequested"
	reasonCommentEdited     = "CommentEdited"
	reasonDuplicateName     = "DuplicateName"
	reasonInPullRequest     = "InPullRequest"
	reasonInPush            = "InPush"
	reasonMergeGroupEnded   = "MergeGroupEnded"
	reasonNoCommand         = "NoCommand"
	reasonNotApproved       = "NotApproved"
	reasonNotSelected       = "NotSelected"
	reasonNotTheHead        = "NotTheHead"
	reasonPullRequestClosed = "PullRequestClosed"
	reasonSecretWithheld    = "SecretWithheld"
	reasonSkipCI            = "SkipCI"
	reasonTooManyPipelines  = "TooManyPipelines"
	reasonTooMuchWork       = "TooMuchWork"
)

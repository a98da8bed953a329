// SPDX-License-Identifier: Apache-2.0

package github

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonAnotherApp             = "AnotherApp"
	reasonBadConfiguration       = "BadConfiguration"
	reasonBadRepository          = "BadRepository"
	reasonCommentGone            = "CommentGone"
	reasonDeliveryGone           = "DeliveryGone"
	reasonError                  = "Error"
	reasonFileNotFound           = "FileNotFound"
	reasonForeignHost            = "ForeignHost"
	reasonInstallationNotFound   = "InstallationNotFound"
	reasonNotAFile               = "NotAFile"
	reasonNotCovered             = "NotCovered"
	reasonNotFound               = "NotFound"
	reasonPullRequestClosed      = "PullRequestClosed"
	reasonPullRequestUnknown     = "PullRequestUnknown"
	reasonRefNotFound            = "RefNotFound"
	reasonRepositoryEmpty        = "RepositoryEmpty"
	reasonRepositoryNotInstalled = "RepositoryNotInstalled"
	reasonRepositoryNotReadable  = "RepositoryNotReadable"
	reasonRepositoryReplaced     = "RepositoryReplaced"
	reasonTokenRenewed           = "TokenRenewed"
	reasonTooMany                = "TooMany"
)

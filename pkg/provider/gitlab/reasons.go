// SPDX-License-Identifier: Apache-2.0

package gitlab

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonBadConfiguration        = "BadConfiguration"
	reasonBadRepository           = "BadRepository"
	reasonBadUser                 = "BadUser"
	reasonFileNotFound            = "FileNotFound"
	reasonFileTooLarge            = "FileTooLarge"
	reasonForeignHost             = "ForeignHost"
	reasonMergeRequestNotPrepared = "MergeRequestNotPrepared"
	reasonNotCovered              = "NotCovered"
	reasonNotFound                = "NotFound"
	reasonNoteGone                = "NoteGone"
	reasonPullRequestClosed       = "PullRequestClosed"
	reasonRefNotFound             = "RefNotFound"
	reasonRepositoryEmpty         = "RepositoryEmpty"
	reasonRepositoryReplaced      = "RepositoryReplaced"
	reasonSuperseded              = "Superseded"
)

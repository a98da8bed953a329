// SPDX-License-Identifier: Apache-2.0

package provider

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonBadCheck         = "BadCheck"
	reasonBadConfiguration = "BadConfiguration"
	reasonBadProxy         = "BadProxy"
	reasonBadRevision      = "BadRevision"
	reasonFileNotFound     = "FileNotFound"
	reasonFileTooLarge     = "FileTooLarge"
	reasonFilesTooLarge    = "FilesTooLarge"
	reasonForeignHost      = "ForeignHost"
	reasonNoAnswer         = "NoAnswer"
	reasonNotADirectory    = "NotADirectory"
	reasonNotAFile         = "NotAFile"
	reasonRefNotFound      = "RefNotFound"
	reasonTooManyFiles     = "TooManyFiles"
	reasonUnexpectedAnswer = "UnexpectedAnswer"
)

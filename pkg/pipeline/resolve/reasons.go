// SPDX-License-Identifier: Apache-2.0

package resolve

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonBadAnnotation     = "BadAnnotation"
	reasonBadConversion     = "BadConversion"
	reasonBadName           = "BadName"
	reasonBadReference      = "BadReference"
	reasonBadType           = "BadType"
	reasonBadYAML           = "BadYAML"
	reasonDuplicateKey      = "DuplicateKey"
	reasonDuplicateName     = "DuplicateName"
	reasonFileTooLarge      = "FileTooLarge"
	reasonMissingPipeline   = "MissingPipeline"
	reasonMissingTask       = "MissingTask"
	reasonNoName            = "NoName"
	reasonSecretInName      = "SecretInName"
	reasonTooLarge          = "TooLarge"
	reasonTooManyDocuments  = "TooManyDocuments"
	reasonTooManyPipelines  = "TooManyPipelines"
	reasonTooManyReferences = "TooManyReferences"
	reasonTooManySteps      = "TooManySteps"
)

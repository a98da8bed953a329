// SPDX-License-Identifier: Apache-2.0

package api

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonForeignHost           = "ForeignHost"
	reasonRepositoryNotReadable = "RepositoryNotReadable"
	reasonRepositoryReplaced    = "RepositoryReplaced"
	reasonTooMany               = "TooMany"
)

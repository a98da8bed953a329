// SPDX-License-Identifier: Apache-2.0

package secrets

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonNotCopiedYet  = "NotCopiedYet"
	reasonSecretMissing = "SecretMissing"
	reasonSecretNotRead = "SecretNotRead"
)

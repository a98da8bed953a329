// SPDX-License-Identifier: Apache-2.0

package template

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonBadParam            = "BadParam"
	reasonBadPayload          = "BadPayload"
	reasonPayloadTooLarge     = "PayloadTooLarge"
	reasonSecretHoldsVariable = "SecretHoldsVariable"
	reasonTooLarge            = "TooLarge"
)

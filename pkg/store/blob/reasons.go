// SPDX-License-Identifier: Apache-2.0

package blob

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonCorruptPayload = "CorruptPayload"
	reasonForeignPayload = "ForeignPayload"
	reasonTooLarge       = "TooLarge"
)

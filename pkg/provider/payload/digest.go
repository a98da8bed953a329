// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// DigestPrefix is the prefix of keys that are derived from a body.
const DigestPrefix = "sha256:"

// Digest returns a key that is derived from parts of a delivery, including its body.
func Digest(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		// With their lengths, no two lists of parts have the same bytes. A hash never fails to
		// write.
		_ = binary.Write(sum, binary.BigEndian, uint64(len(part)))
		sum.Write(part)
	}
	return DigestPrefix + hex.EncodeToString(sum.Sum(nil))
}

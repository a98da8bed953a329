// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// EventName is the name of the GitEvent of a delivery, the same on every replica and for every copy of the delivery:
// the kind (GitEventSpec.Kind; "_" becomes "-") and half of the SHA-256 of provider, host and delivery key. Nothing else
// enters the hash, so a redelivery meets the object of the first one.
func EventName(kind, provider, host, deliveryKey string) string {
	// NUL cannot occur in any of the three: two different triples never give the same text.
	sum := sha256.Sum256([]byte(provider + "\x00" + strings.ToLower(host) + "\x00" + deliveryKey))
	return strings.ReplaceAll(kind, "_", "-") + "-" + hex.EncodeToString(sum[:])[:32]
}

// Kind is what people call the event: its Trigger, or "comment".
func (s *GitEventSpec) Kind() string {
	if s.Comment != nil {
		return "comment"
	}
	return string(s.Trigger)
}

// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// ReopenedName is the name of the n-th event that a delivery becomes after the first, when the ones before it ended without
// runs and the service sends it again. Names of events end in hexadecimal digits, so that "-r" tells.
func ReopenedName(name string, n int) string { return fmt.Sprintf("%s-r%d", name, n) }

// Reopened tells whether somebody had the service send the delivery of an event again.
func Reopened(name string) bool {
	last := strings.LastIndexByte(name, '-')
	return last >= 0 && strings.HasPrefix(name[last:], "-r")
}

// Kind is what people call the event: its Trigger, or "comment".
func (s *GitEventSpec) Kind() string {
	if s.Comment != nil {
		return "comment"
	}
	return string(s.Trigger)
}

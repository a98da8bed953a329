// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"encoding/json"
	"mime"
	"net/http"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/provider/text"
)

// The sizes of the fields of a GitEventSpec, in bytes.
const (
	MaxTitle  = 1024
	MaxRef    = 1024
	MaxLogin  = 255
	MaxName   = 255
	MaxOwner  = 1024
	MaxURL    = 2048
	MaxLabels = 100
	MaxHeader = 1024
	// maxKey is what a delivery key may have.
	maxKey = 255
)

// Field is a text that an event needs.
type Field struct {
	name, value string
	limit       int
}

// Text is a Field: where it is in the body, what it is, and the most bytes it may have.
func Text(name, value string, limit int) Field { return Field{name, value, limit} }

// Check reports whether every field is there, fits, and is text. The fault is Invalid.
func Check(fields ...Field) error {
	for _, f := range fields {
		if f.value == "" || len(f.value) > f.limit || text.Clean(f.value) != f.value {
			return Missing(f.name)
		}
	}
	return nil
}

// Missing is the fault of a body without a field that is needed.
func Missing(name string) error {
	return fault.Invalidf("BadPayload", "the delivery's body has no usable %s", name)
}

// Unmarshal decodes a body that Scan has found to be valid JSON into the parts that are read of it.
// Members at its top that no field is read from are left out before: they are what makes a body
// large. What is left is refused if it would take too much memory.
func Unmarshal(body []byte, into any, without ...string) error {
	var err error
	for _, name := range without {
		if body, err = withoutMember(body, name); err != nil {
			break
		}
	}
	if err == nil && memory.Of(body) > memory.MaxAnswer {
		return Bad("the delivery's body holds too many values")
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fault.Invalidf("BadPayload", "the delivery's body is not what the Git service documents: %w", err)
	}
	return nil
}

// ReadsJSON refuses form-encoded deliveries.
func ReadsJSON(h http.Header) error {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err == nil && kind == "application/x-www-form-urlencoded" {
		return Bad("the delivery is form-encoded: set the webhook's content type to application/json at the Git service")
	}
	return nil
}

// Key returns the header that all deliveries of one event have in common.
func Key(h http.Header, name string) (string, error) {
	key := h.Get(name)
	if key == "" || len(key) > maxKey || !utf8.ValidString(key) {
		return "", fault.Invalidf("BadPayload", "the delivery has no usable %s header", name)
	}
	return key, nil
}

// Headers keeps what expressions may read: the caller lists what is kept, so that no secret is
// forgotten.
func Headers(h http.Header, names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		if value := h.Get(name); value != "" {
			out[http.CanonicalHeaderKey(name)] = text.Bytes(text.Clean(value), MaxHeader)
		}
	}
	return out
}

// Unauthenticated is the fault of a delivery that is not signed as it must be.
func Unauthenticated(message string) error {
	return fault.Operatorf("Unauthenticated", "%s", message)
}

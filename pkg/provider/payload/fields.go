// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"encoding/json"
	"mime"
	"net/http"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// The maximum sizes of the fields of a GitEventSpec, in bytes.
const (
	MaxTitle  = 1024
	MaxRef    = 1024
	MaxLogin  = 255
	MaxName   = 255
	MaxOwner  = 1024
	MaxURL    = 2048
	MaxLabels = 100
	MaxHeader = 1024
	// maxKey is the maximum size of a delivery key.
	maxKey = 255
)

// Field is a text that an event needs.
type Field struct {
	name, value string
	limit       int
}

// Text returns a Field: its place in the body, its value, and its maximum size in bytes.
func Text(name, value string, limit int) Field { return Field{name, value, limit} }

// Check returns an Invalid fault unless every field is set, fits, and is clean text.
func Check(fields ...Field) error {
	for _, f := range fields {
		if f.value == "" || len(f.value) > f.limit || text.Clean(f.value) != f.value {
			return Missing(f.name)
		}
	}
	return nil
}

// Missing returns the fault of a body without a required field.
func Missing(name string) error {
	return fault.Invalidf(reasonBadPayload, "the delivery's body has no usable %s", name)
}

// Unmarshal decodes a body that Scan has accepted. It first removes the named members at the top,
// which are not read but make a body large. It refuses the rest if that would take too much memory.
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
		return fault.Invalidf(reasonBadPayload, "the delivery's body is not what the Git service documents: %w", err)
	}
	return nil
}

// CheckJSON refuses form-encoded deliveries.
func CheckJSON(h http.Header) error {
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
		return "", fault.Invalidf(reasonBadPayload, "the delivery has no usable %s header", name)
	}
	return key, nil
}

// Headers returns the headers that expressions may read. The caller names each of them, so that no
// secret is included by mistake.
func Headers(h http.Header, names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		if value := h.Get(name); value != "" {
			out[http.CanonicalHeaderKey(name)] = text.Bytes(text.Clean(value), MaxHeader)
		}
	}
	return out
}

// Unauthenticated returns the fault of a delivery without a valid signature.
func Unauthenticated(message string) error {
	return fault.Operatorf(reasonUnauthenticated, "%s", message)
}

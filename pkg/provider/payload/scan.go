// SPDX-License-Identifier: Apache-2.0

// Package payload reads webhook bodies that are not verified yet.
package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Value reads the JSON value of a known key.
type Value func(value []byte) error

// Values are the known keys of an object.
type Values map[string]Value

// Scan reads the known keys at the top of a body that is one JSON object, without copying the rest:
// a push may be 25 MB. It refuses a key that occurs twice, ignoring case. A decoder would use the
// second one after the signature was checked with the secret of the first one's repository. Errors
// are Invalid.
func Scan(body []byte, known Values) error {
	if !json.Valid(body) { // which also refuses values that are nested deeper than 10000 levels
		return Bad("the delivery's body is not JSON")
	}
	return object("the delivery's body", body, known)
}

// Object reads an object, or null.
func Object(what string, known Values) Value {
	return func(value []byte) error {
		if bytes.Equal(value, []byte("null")) {
			return nil
		}
		return object(what, value, known)
	}
}

// String reads a string.
func String(what string, into *string) Value {
	return func(value []byte) error {
		var text *string
		if err := json.Unmarshal(value, &text); err != nil || text == nil {
			return Bad(what + " is not a string")
		}
		*into = *text
		return nil
	}
}

// Number reads a number; it only records that there is one.
func Number(what string, there *bool) Value {
	return func(value []byte) error {
		var number *float64
		if err := json.Unmarshal(value, &number); err != nil || number == nil {
			return Bad(what + " is not a number")
		}
		*there = true
		return nil
	}
}

// object passes the values of known keys to their functions. The value is valid JSON.
func object(what string, value []byte, known Values) error {
	seen := map[string]bool{}
	err := eachMember(value, func(name string, value []byte) error {
		key, read := lookup(known, name)
		if read == nil {
			return nil
		}
		if seen[key] {
			return Bad(what + " names " + key + " twice")
		}
		seen[key] = true
		return read(value)
	})
	if errors.Is(err, errNotObject) {
		return Bad(what + " is not a JSON object")
	}
	return err
}

func lookup(known Values, name string) (string, Value) {
	for key, read := range known {
		if strings.EqualFold(key, name) {
			return key, read
		}
	}
	return "", nil
}

// Bad returns the Invalid fault of a body that cannot be used.
func Bad(message string) error { return fault.Invalidf(reasonBadPayload, "%s", message) }

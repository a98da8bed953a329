// SPDX-License-Identifier: Apache-2.0

// Package jsonmember finds the members of a JSON object in place: reading one field of a body of 25 MB copies that field
// and nothing else.
package jsonmember

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// ErrNotObject means that the JSON value is something else than an object.
var ErrNotObject = errors.New("not a JSON object")

// Each calls f with the name and the value of each member, in their order and however often a name occurs. The value is
// a part of object. Each stops at the first error of f and returns it.
//
// object must be valid (json.Valid): there is no other check than that it is an object.
func Each(object []byte, f func(name string, value []byte) error) error {
	rest := bytes.TrimLeft(object, space)
	if len(rest) == 0 || rest[0] != '{' {
		return ErrNotObject
	}
	rest = rest[1:]
	for {
		rest = bytes.TrimLeft(rest, space+",")
		if len(rest) == 0 || rest[0] == '}' {
			return nil
		}
		n := text(rest)
		name, err := decoded(rest[:n])
		if err != nil {
			return err
		}
		rest = bytes.TrimLeft(rest[n:], space+":")
		n = length(rest)
		if err := f(name, rest[:n:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
}

// Without returns object without the members of that name, in whatever case, as encoding/json matches names. It copies
// what is left. object must be valid, as for Each.
func Without(object []byte, name string) ([]byte, error) {
	out := []byte{'{'}
	err := Each(object, func(member string, value []byte) error {
		if strings.EqualFold(member, name) {
			return nil
		}
		quoted, err := json.Marshal(member)
		if err != nil {
			return err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, quoted...), ':')
		out = append(out, value...)
		return nil
	})
	return append(out, '}'), err
}

// space is what JSON has between tokens.
const space = " \t\r\n"

// decoded is the text of a quoted string.
func decoded(quoted []byte) (string, error) {
	if len(quoted) >= 2 && bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	var s string
	err := json.Unmarshal(quoted, &s)
	return s, err
}

// length is how long the value at the start is.
func length(json []byte) int {
	if len(json) == 0 {
		return 0
	}
	switch json[0] {
	case '"':
		return text(json)
	case '{', '[':
		return nested(json)
	}
	if end := bytes.IndexAny(json, space+",]}"); end >= 0 {
		return end
	}
	return len(json)
}

// nested is the length of an object or an array. It counts brackets and looks at nothing else but strings, which may
// have some in them.
func nested(json []byte) int {
	depth := 0
	for i := 0; i < len(json); i++ {
		switch json[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			i += text(json[i:]) - 1
		}
	}
	return len(json)
}

// text is the length of the string at the start, with its quotes.
func text(json []byte) int {
	for i := 1; i < len(json); i++ {
		switch json[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(json)
}

// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// errNotObject means that a JSON value is not an object.
var errNotObject = errors.New("not a JSON object")

// eachMember calls f with the name and value of each member in order, also if a name occurs several
// times. The value is a slice of object. eachMember stops at the first error of f and returns it.
//
// object must be valid (json.Valid); only whether it is an object is checked.
func eachMember(object []byte, f func(name string, value []byte) error) error {
	rest := bytes.TrimLeft(object, space)
	if len(rest) == 0 || rest[0] != '{' {
		return errNotObject
	}
	rest = rest[1:]
	for {
		rest = bytes.TrimLeft(rest, space+",")
		if len(rest) == 0 || rest[0] == '}' {
			return nil
		}
		n := stringLength(rest)
		name, err := unquote(rest[:n])
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

// Element decodes the first element whose field key is value, in the array list at the top of a
// body that Scan has accepted. It skips the others in place: a push of many commits needs only one
// of them. Without such an element, into is unchanged.
func Element(body []byte, list, key, value string, into any) error {
	return eachMember(body, func(name string, array []byte) error {
		if !strings.EqualFold(name, list) || array[0] != '[' {
			return nil
		}
		rest := bytes.TrimLeft(array[1:], space+",")
		for ; len(rest) > 0 && rest[0] != ']'; rest = bytes.TrimLeft(rest, space+",") {
			n := length(rest)
			element := rest[:n:n]
			rest = rest[n:]
			if hasField(element, key, value) {
				return json.Unmarshal(element, into)
			}
		}
		return nil
	})
}

// hasField reports whether an object has a field with this text.
func hasField(object []byte, key, value string) bool {
	is := false
	_ = eachMember(object, func(name string, field []byte) error { // a value that is not an object has no fields
		if strings.EqualFold(name, key) && len(field) > 0 && field[0] == '"' {
			text, err := unquote(field)
			is = err == nil && text == value
		}
		return nil
	})
	return is
}

// withoutMember returns object without the members of that name, ignoring case, as encoding/json
// matches names. It copies the rest. object must be valid, as for eachMember.
func withoutMember(object []byte, name string) ([]byte, error) {
	out := []byte{'{'}
	err := eachMember(object, func(member string, value []byte) error {
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

// space is the white space of JSON.
const space = " \t\r\n"

// unquote returns the text of a quoted string.
func unquote(quoted []byte) (string, error) {
	if len(quoted) >= 2 && bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	var s string
	err := json.Unmarshal(quoted, &s)
	return s, err
}

// length returns the length of the value at the start.
func length(json []byte) int {
	if len(json) == 0 {
		return 0
	}
	switch json[0] {
	case '"':
		return stringLength(json)
	case '{', '[':
		return nested(json)
	}
	if end := bytes.IndexAny(json, space+",]}"); end >= 0 {
		return end
	}
	return len(json)
}

// nested returns the length of an object or an array. It counts brackets, and skips strings, which
// may contain brackets.
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
			i += stringLength(json[i:]) - 1
		}
	}
	return len(json)
}

// stringLength returns the length of the string at the start, including its quotes.
func stringLength(json []byte) int {
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

// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// maxDecoded bounds how many bytes are decoded to find the scalars of one document that must not be text.
const maxDecoded = 64 << 20

// decode reads JSON leniently: unknown fields are dropped, as Pipelines-as-Code drops them, although Tekton's webhook
// refuses them; Set.Unknown names them. Values of a wrong type are refused. A text
// that a whole plain scalar became is a number or a boolean if its field wants one: 3 and true are texts as well, and
// only the field tells which is meant.
func decode(doc *document, data []byte, into any, plain map[string]bool) error {
	for decoded := 0; ; decoded += len(data) {
		err := json.Unmarshal(data, into)
		if err == nil {
			return nil
		}
		var wrong *json.UnmarshalTypeError
		if !errors.As(err, &wrong) {
			return fault.Invalidf("BadType", "%s: %w", doc.place(), err)
		}
		retyped := retype(data, wrong, plain)
		if retyped == nil || decoded > maxDecoded {
			return wrongType(doc, err, wrong)
		}
		data = retyped
		reflect.ValueOf(into).Elem().SetZero()
	}
}

// number is a number as JSON and YAML both write it.
var number = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$`)

// retype returns the JSON with the text that was refused as what its field wants, nil if it is not such a text.
func retype(data []byte, wrong *json.UnmarshalTypeError, plain map[string]bool) []byte {
	end := int(wrong.Offset) // just behind the text
	if wrong.Value != "string" || end < 2 || end > len(data) || data[end-1] != '"' {
		return nil
	}
	start := bytes.LastIndexByte(data[:end-1], '"') // numbers and booleans hold no quotes
	if start < 0 {
		return nil
	}
	text := string(data[start+1 : end-1])
	if !plain[text] || !fits(text, wrong.Type.Kind()) {
		return nil
	}
	return slices.Concat(data[:start], []byte(text), data[end:])
}

// fits tells whether a text, without quotes, is a value of a kind.
func fits(text string, kind reflect.Kind) bool {
	if kind == reflect.Bool {
		return text == "true" || text == "false"
	}
	return kind >= reflect.Int && kind <= reflect.Float64 && number.MatchString(text)
}

func wrongType(doc *document, err error, wrong *json.UnmarshalTypeError) error {
	if wrong.Field == "" {
		return fault.Invalidf("BadType", "%s: %w", doc.place(), err)
	}
	return fault.Invalidf("BadType", "%s: a value at %s must be %s, not %s", doc.place(), field(wrong.Field), wantedKind(wrong.Type), givenKind(wrong.Value))
}

// field is a decoder's path without the names of embedded Go structs, which authors do not write.
func field(path string) string {
	names := slices.DeleteFunc(strings.Split(path, "."), func(name string) bool {
		return name != "" && unicode.IsUpper(rune(name[0]))
	})
	return strings.Join(names, ".")
}

// wantedKind says in an author's words what a field takes.
func wantedKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text (put quotes around it)"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "a mapping"
	}
	return "a whole number"
}

// givenKind says in an author's words what JSON calls a value.
func givenKind(value string) string {
	kind, rest, _ := strings.Cut(value, " ")
	switch kind {
	case "string":
		return "text"
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	case "bool":
		return "true or false"
	}
	return strings.TrimSpace("a " + kind + " " + rest)
}

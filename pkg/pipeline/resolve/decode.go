// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/yamlerror"
)

// maxDecoded limits how many bytes are decoded to find the scalars of one document that must not be
// text.
const maxDecoded = 64 << 20

// decode reads JSON leniently. It drops unknown fields, as Pipelines-as-Code does, although
// Tekton's webhook refuses them. Set.Unknown names them. Values of a wrong type are refused. A text
// that was a whole plain scalar becomes a number or a boolean if its field wants one: 3 and true
// may be texts, too, and only the field decides.
func decode(doc *document, data []byte, into any, plain map[string]bool) error {
	for decoded := 0; ; decoded += len(data) {
		err := json.Unmarshal(data, into)
		if err == nil {
			return nil
		}
		var wrong *json.UnmarshalTypeError
		errors.As(err, &wrong)
		retyped := retype(data, wrong, plain)
		if retyped == nil || decoded > maxDecoded {
			return doc.refused(data, into, err)
		}
		data = retyped
		reflect.ValueOf(into).Elem().SetZero()
	}
}

// refused returns the fault for a document that a type does not accept: which value is wrong, and
// where it is.
func (d *document) refused(data []byte, into any, reason error) error {
	found := yamlerror.Refused(data, reflect.TypeOf(into))
	if found == nil {
		return fault.Invalidf(reasonBadType, "%s: %w", d.place(), reason)
	}
	code := "BadType"
	if found.Missing {
		code = "NoValue"
	}
	return d.invalidAt(code, found.Path, "%s", found.Why)
}

// number is a number as JSON and YAML both write it.
var number = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$`)

// retype returns the JSON with the refused text converted to the type of its field. It returns nil
// if the text cannot be converted.
func retype(data []byte, wrong *json.UnmarshalTypeError, plain map[string]bool) []byte {
	if wrong == nil {
		return nil
	}
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

// fits reports whether a text, without quotes, is a value of a kind.
func fits(text string, kind reflect.Kind) bool {
	if kind == reflect.Bool {
		return text == "true" || text == "false"
	}
	return kind >= reflect.Int && kind <= reflect.Float64 && number.MatchString(text)
}

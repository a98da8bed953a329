// SPDX-License-Identifier: Apache-2.0

package yamlerror

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Value is a value that its field does not accept, or a required value that is missing.
type Value struct {
	Path Path
	// Why begins with the path: `spec.timeouts.pipeline: "1 hour" is no duration (write 1h0m)`.
	Why string
	// Missing is true if the value is required and not there.
	Missing bool
}

// Refused returns the first value in a JSON text that a Go type does not accept, or nil. It exists
// because encoding/json does not say which field is wrong if the field's type decodes itself, such
// as a quantity or a duration.
func Refused(data []byte, into reflect.Type) *Value {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil
	}
	return refused(tree, into, nil)
}

func refused(value any, t reflect.Type, path Path) *Value {
	for t.Kind() == reflect.Pointer {
		if value == nil {
			return nil
		}
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return ofReader(value, t, path)
	}
	if value == nil && t.Kind() != reflect.Struct {
		return nil
	}
	return ofKind(value, t, path)
}

// ofKind checks a value whose type does not decode itself. A struct that is null has the fields of
// its type.
func ofKind(value any, t reflect.Type, path Path) *Value {
	if value == nil {
		value = map[string]any{}
	}
	mapping, isMapping := value.(map[string]any)
	list, isList := value.([]any)
	switch kind := t.Kind(); {
	case isMapping && kind == reflect.Struct:
		return ofStruct(mapping, t, path)
	case isMapping && kind == reflect.Map:
		return ofMap(mapping, func(string) reflect.Type { return t.Elem() }, path)
	case isList && kind == reflect.Slice:
		return ofList(list, t.Elem(), path)
	}
	if err := reads(value, t); err != nil {
		return &Value{Path: path, Why: path.String() + " must be " + wanted(t) + ", not " + given(value, t)}
	}
	return nil
}

func ofList(list []any, t reflect.Type, path Path) *Value {
	for i, item := range list {
		if found := refused(item, t, with(path, i)); found != nil {
			return found
		}
	}
	return nil
}

// ofReader checks a value whose type decodes itself.
func ofReader(value any, t reflect.Type, path Path) *Value {
	if err := reads(value, t); err != nil {
		return &Value{Path: path, Why: path.String() + misread(value, t, err)}
	}
	return nil
}

func ofStruct(node map[string]any, t reflect.Type, path Path) *Value {
	fields := map[string]reflect.Type{}
	fieldsOf(t, fields)
	named := map[string]bool{}
	found := ofMap(node, func(key string) reflect.Type {
		for name, field := range fields {
			if strings.EqualFold(name, key) { // as encoding/json finds it
				named[name] = true
				return field
			}
		}
		return nil
	}, path)
	if found != nil {
		return found
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if named[name] {
			continue
		}
		if _, err := json.Marshal(reflect.Zero(fields[name]).Interface()); err != nil { // Tekton's type of a param's value
			at := with(path, name)
			return &Value{Path: at, Missing: true, Why: at.String() + ` is missing: give it a value, "" for the empty text`}
		}
	}
	return nil
}

// ofMap checks the values of a mapping in the order of their keys. Keys without a type are skipped.
func ofMap(node map[string]any, typeOf func(key string) reflect.Type, path Path) *Value {
	for _, key := range slices.Sorted(maps.Keys(node)) {
		t := typeOf(key)
		if t == nil {
			continue
		}
		if found := refused(node[key], t, with(path, key)); found != nil {
			return found
		}
	}
	return nil
}

// fieldsOf collects the fields of a struct by their JSON names, with those of embedded structs.
func fieldsOf(t reflect.Type, fields map[string]reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		embedded := field.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case name == "-":
		case field.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			fieldsOf(embedded, fields)
		case field.IsExported() && name == "":
			fields[field.Name] = field.Type
		case field.IsExported():
			fields[name] = field.Type
		}
	}
}

// reads returns the error of decoding a value into a type.
func reads(value any, t reflect.Type) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, reflect.New(t).Interface())
}

// with returns a path with one more step. It does not change the given path.
func with(path Path, step any) Path { return append(slices.Clip(path), step) }

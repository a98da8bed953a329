// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	pipelinev1beta1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
)

// maxUnknown is how many fields of one document are named.
const maxUnknown = 20

// Field is a field of a document that its kind does not have.
type Field struct {
	// File is the document's, and Line the one at which it starts.
	File string
	Line int
	// Path is like spec.tasks[0].taskSpec.stepps.
	Path string
}

// String returns the field with its place.
func (f Field) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Path) }

// Unknown returns the fields that do not exist, of all PipelineRuns, Pipelines and Tasks. They are
// dropped when a document is decoded.
func (s *Set) Unknown() []Field {
	var all []Field
	for _, def := range s.definitions {
		all = append(all, s.UnknownIn(def)...)
	}
	for _, doc := range slices.Concat(s.pipelines, s.tasks) {
		all = append(all, doc.unknown()...)
	}
	return all
}

// UnknownIn returns the unknown fields in the document of a definition.
func (s *Set) UnknownIn(def Definition) []Field {
	doc, found := s.runs[position{def.File, def.Document}]
	if !found {
		return nil
	}
	return doc.unknown()
}

// unknown compares a document with the type of its kind.
func (d *document) unknown() []Field {
	kind, _ := d.tree["kind"].(string)
	types := map[string]any{
		apiV1 + kindPipelineRun: pipelinev1.PipelineRun{}, apiV1beta1 + kindPipelineRun: pipelinev1beta1.PipelineRun{},
		apiV1 + kindPipeline: pipelinev1.Pipeline{}, apiV1beta1 + kindPipeline: pipelinev1beta1.Pipeline{},
		apiV1 + kindTask: pipelinev1.Task{}, apiV1beta1 + kindTask: pipelinev1beta1.Task{},
	}
	object := types[d.apiVersion+kind]
	if object == nil {
		return nil
	}
	c := comparison{known: map[reflect.Type]map[string]reflect.Type{}}
	c.compare(d.tree, reflect.TypeOf(object), "")
	var all []Field
	for _, path := range c.unknown {
		all = append(all, Field{File: d.file, Line: d.line, Path: path})
	}
	return all
}

// comparison finds the keys of a tree that the decoder finds no field for.
type comparison struct {
	// known are the fields of structs by their names in lower case, because the decoder takes any
	// case.
	known   map[reflect.Type]map[string]reflect.Type
	unknown []string
}

// compare checks a value of a type, at a path. Types that decode themselves may have any keys.
func (c *comparison) compare(value any, t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return
	}
	switch value := value.(type) {
	case []any:
		if t.Kind() != reflect.Slice {
			return
		}
		for i, item := range value {
			c.compare(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			c.field(key, value[key], t, strings.TrimPrefix(path+"."+key, "."))
		}
	}
}

// field checks one key of a mapping.
func (c *comparison) field(key string, value any, t reflect.Type, path string) {
	switch t.Kind() {
	case reflect.Map:
		c.compare(value, t.Elem(), path)
	case reflect.Struct:
		if known, found := c.fields(t)[strings.ToLower(key)]; found {
			c.compare(value, known, path)
		} else if len(c.unknown) < maxUnknown {
			c.unknown = append(c.unknown, path)
		}
	}
}

// fields are the types of a struct's fields, those of embedded structs included.
func (c *comparison) fields(t reflect.Type) map[string]reflect.Type {
	if known, found := c.known[t]; found {
		return known
	}
	known := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			maps.Copy(known, c.fields(embedded))
		case name != "-" && field.IsExported():
			known[strings.ToLower(cmp.Or(name, field.Name))] = field.Type
		}
	}
	c.known[t] = known
	return known
}

// SPDX-License-Identifier: Apache-2.0

package caret

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/yamlerror"
)

// Unknown returns the fields that do not exist, of all PipelineRuns, Pipelines and Tasks.
func (s *Sources) Unknown() []resolve.Field { return s.set.Unknown() }

// Warning is something without effect, and its place.
type Warning struct {
	Place
	Says string
}

// Lint returns the annotations of PipelineRuns that have no effect, and the placeholders of all
// files that do not exist but look like a variable.
func (s *Sources) Lint(scope *template.Scope) []Warning {
	var all []Warning
	for _, def := range s.set.Definitions() {
		for _, finding := range match.Lint(def.Annotations) {
			at := s.Field(def.File, def.Document, "metadata.annotations."+finding.Annotation)
			all = append(all, Warning{at, finding.Says})
		}
	}
	for file, text := range s.texts {
		d := document{lines: strings.Split(text, "\n")}
		d.to = len(d.lines)
		for _, name := range scope.Misspelt(text) {
			line, column, _ := d.findText("{{"+name.Name+"}}", clue{})
			all = append(all, Warning{Place{File: file, Line: line, Column: column}, name.Says()})
		}
	}
	return all
}

// Field returns the place of a field of a definition, by its path, for example spec.tasks[0].name.
// If the field does not exist, it returns the place of the last part of the path that does. For an
// inlined field, that may be the reference that stands for it.
func (s *Sources) Field(file string, document int, path string) Place {
	return s.FieldAt(file, max(s.begins[file][document], 1), path)
}

// FieldAt is Field with the line at which the document starts.
func (s *Sources) FieldAt(file string, line int, path string) Place {
	text, known := s.texts[file]
	if !known {
		return Place{File: file, Line: line}
	}
	d := newDocument(text, line)
	if d.root != nil {
		if found := follow(d.root, path); found != nil {
			return Place{File: file, Line: found.Line, Column: found.Column}
		}
	}
	return Place{File: file, Line: line, Column: d.indentation(line) + 1}
}

// step is the first part of a path: a key or an index.
var step = regexp.MustCompile(`^\.?(?:\[([0-9]+)\]|([^.[]+))(.*)$`)

// follow returns the node at which a path ends, or the last one on its way: a key, or an item of a
// list.
func follow(n *yaml.Node, path string) *yaml.Node {
	var last *yaml.Node
	for {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		at, value, rest := next(n, path)
		if at == nil {
			return last
		}
		last, n, path = at, value, rest
	}
}

// next takes the first step of a path: to a key and its value, or to an item, which is both. It
// returns nil if there is no such step.
func next(n *yaml.Node, path string) (at, value *yaml.Node, rest string) {
	parts := step.FindStringSubmatch(path)
	switch {
	case parts == nil:
		return nil, nil, ""
	case n.Kind == yaml.SequenceNode:
		index, err := strconv.Atoi(parts[1])
		if err != nil || index >= len(n.Content) {
			return nil, nil, ""
		}
		return n.Content[index], n.Content[index], parts[3]
	}
	if whole := pair(n, strings.TrimPrefix(path, ".")); whole != nil { // a key with a dot in it
		return whole[0], whole[1], ""
	}
	reference := map[string]string{"pipelineSpec": "pipelineRef", "taskSpec": "taskRef"}[parts[2]]
	for _, key := range []string{parts[2], reference} {
		if found := pair(n, key); key != "" && found != nil {
			return found[0], found[1], parts[3]
		}
		if merged, whole := yamlerror.Node(n, yamlerror.Path{key}); key != "" && whole { // with a merge key
			return merged, merged, parts[3]
		}
	}
	return nil, nil, ""
}

// pair returns a key of a mapping and its value, nil if there is none. Of equal keys the last wins.
func pair(n *yaml.Node, key string) []*yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		if strings.EqualFold(n.Content[i].Value, key) {
			return slices.Clip(n.Content[i : i+2])
		}
	}
	return nil
}

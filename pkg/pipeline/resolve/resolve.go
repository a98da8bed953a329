// SPDX-License-Identifier: Apache-2.0

// Package resolve reads the definitions in .tekton and creates complete PipelineRuns from them. It
// parses documents once per event, and places template variables into the parsed tree as data. It
// inlines Pipelines and Tasks: local ones, and those that annotations refer to, which its caller
// fetches. A mistake of an author is a fault.Invalid of that document and does not affect the
// others.
package resolve

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// Definition is one PipelineRun that an author defined, or one unreadable document that may have
// been one.
type Definition struct {
	// File is the path in the repository.
	File string
	// Document is the 0-based index among the documents of the file that have content.
	Document int
	// Name is the author's name, or generateName with its dash, before variables are replaced. It
	// is the file's path when it is not known.
	Name string
	// Annotations are the author's, before variables are replaced.
	Annotations map[string]string
	// Err is a fault.Invalid when the document cannot be used.
	Err error
	// BadName is a fault.Invalid when the definition has no usable name, or the name of another
	// PipelineRun: their checks would have the same name. Only events that select the definition
	// report it.
	BadName error
}

// Set has all definitions of .tekton at one revision. It does not change after Load and may be
// shared.
type Set struct {
	definitions []Definition
	runs        map[position]*document
	pipelines   []*document
	tasks       []*document
	// spent is what was read for the event, including what newSet was given. over is the error of
	// the document that exceeded the limit.
	spent budget
	over  error
	// source is how many bytes the files have. Documents store them to locate mistakes.
	source int
	// uncounted is the number of broken documents that are no definitions.
	uncounted int
	// pace is called before each piece of rendering; nil does not wait.
	pace Pace
	// same are the Tasks that all PipelineRuns of one event share; nil shares none.
	same *sameTasks
}

// position identifies a document of a set.
type position struct {
	file  string
	index int
}

// Load parses the files of .tekton. It never fails as a whole: a document that does not parse
// becomes a Definition with an Err.
func Load(files []git.File) *Set {
	return newSet(files, true, budget{})
}

// newSet parses files, which are local or not (document.local). spent is what was read for the
// event before.
func newSet(files []git.File, local bool, spent budget) *Set {
	set := &Set{runs: map[position]*document{}, spent: spent}
	for _, file := range files {
		documents, err := split(file, local)
		if err != nil {
			set.addBroken(&document{file: file.Path}, err)
			continue
		}
		for _, doc := range documents {
			set.add(doc)
		}
		set.source += len(file.Data)
	}
	set.markDuplicates()
	return set
}

// Definitions returns one entry for each PipelineRun and each unreadable document, in the order of
// the files.
func (s *Set) Definitions() []Definition {
	return s.definitions
}

// Line returns the line of its file at which a definition's document starts. It is 0 for a document
// that cannot be read: the definition's Err names the line.
func (s *Set) Line(def Definition) int {
	doc, found := s.runs[position{def.File, def.Document}]
	if !found {
		return 0
	}
	return doc.line
}

// Bounded returns fault.Invalid if there are more definitions than can be decided about, or more
// text than is read.
func (s *Set) Bounded() error {
	if s.over != nil {
		return s.over
	}
	if n := len(s.definitions) + s.uncounted; n > maxDefinitions {
		return fault.Invalidf(
			reasonTooManyPipelines,
			".tekton holds %d PipelineRuns, at most %d are read: none of them is started. "+
				"Remove some, or split the repository",
			n,
			maxDefinitions,
		)
	}
	names := 0
	for _, def := range s.definitions {
		names += v1alpha1.Length(def.File) + v1alpha1.Length(def.Name)
	}
	if names > maxNames {
		return fault.Invalidf(
			reasonTooManyPipelines,
			"the paths and names of the %d PipelineRuns in .tekton take %d bytes, at most %d can be kept: none of them is started. "+
				"Shorten them, or remove some",
			len(s.definitions),
			names,
			maxNames,
		)
	}
	return nil
}

// deciding are the annotations that decide when a pipeline starts.
var deciding = regexp.MustCompile(`^` + regexp.QuoteMeta(pipelinesascode.GroupName) + `/(?:on-|target-namespace$)`)

// Annotations returns the definition's annotations, with the placeholders replaced in the values of
// those that say when it starts. The error is *template.Unknown when something must be known first,
// or fault.Invalid; it holds no secret.
func (s *Set) Annotations(def Definition, scope *template.Scope) (map[string]string, error) {
	replaced := maps.Clone(def.Annotations)
	var needs template.Needs
	for _, name := range slices.Sorted(maps.Keys(replaced)) {
		if !deciding.MatchString(name) {
			continue
		}
		text, err := scope.Text(replaced[name])
		if more, unknown := template.NeedsOf(err); unknown {
			needs.Add(more)
			continue
		}
		if err != nil {
			return nil, scope.Conceal(fmt.Errorf("%s: annotation %s: %w", s.place(&def), name, err))
		}
		replaced[name] = text
	}
	if needs.Any() {
		return nil, &template.Unknown{Needs: needs}
	}
	return replaced, nil
}

// add parses a document and files it under its kind.
func (s *Set) add(doc *document) {
	err := s.over
	if err == nil {
		err = doc.parse(&s.spent)
	}
	if f := fault.Of(err); f != nil && f.Reason == reasonTooMuch {
		s.over = err // and nothing behind it is read
	}
	if err != nil {
		s.addBroken(doc, err)
		return
	}
	if err := doc.unread(); err != nil {
		s.addBroken(doc, err)
		return
	}
	doc.apiVersion = doc.word("apiVersion")
	if doc.apiVersion != apiV1 && doc.apiVersion != apiV1beta1 {
		return
	}
	switch doc.word("kind") {
	case kindPipelineRun:
		s.addRun(doc)
	case kindPipeline:
		s.pipelines = append(s.pipelines, doc)
	case kindTask:
		s.tasks = append(s.tasks, doc)
	}
}

// addBroken stores one more document than can be decided about, and counts the others. A broken
// document of a few bytes would take hundreds of bytes.
func (s *Set) addBroken(doc *document, err error) {
	if len(s.definitions) > maxDefinitions {
		s.uncounted++
		return
	}
	s.definitions = append(s.definitions, Definition{File: doc.file, Document: doc.index, Name: doc.file, Err: err})
}

func (s *Set) addRun(doc *document) {
	def := Definition{File: doc.file, Document: doc.index, Name: doc.file}
	name, err := doc.name()
	if err == nil {
		def.Name = name
	}
	def.BadName = err
	def.Annotations, def.Err = doc.annotations()
	s.definitions = append(s.definitions, def)
	s.runs[position{doc.file, doc.index}] = doc
}

// markDuplicates marks runs of one name.
func (s *Set) markDuplicates() {
	first := map[string]int{}
	for i := range s.definitions {
		def := &s.definitions[i]
		if _, known := s.runs[position{def.File, def.Document}]; !known || def.Name == def.File {
			continue
		}
		j, found := first[def.Name]
		if !found {
			first[def.Name] = i
			continue
		}
		s.markDuplicate(def, &s.definitions[j])
		s.markDuplicate(&s.definitions[j], def)
	}
}

func (s *Set) markDuplicate(def, other *Definition) {
	if def.BadName != nil {
		return
	}
	def.BadName = fault.Invalidf(reasonDuplicateName, "%s: PipelineRun %s is defined at %s too: give each its own name",
		s.place(def), def.Name, s.place(other))
}

// place returns where a run's document starts, for people.
func (s *Set) place(def *Definition) string {
	return s.runs[position{def.File, def.Document}].place()
}

// named returns the first document with a name, after its placeholders are replaced, or nil. It
// skips a document whose name cannot be read: the mistake matters only to what refers to that
// document.
func (r *renderer) named(documents []*document, name string) (*document, error) {
	if name == "" {
		return nil, nil
	}
	for _, doc := range documents {
		own, _ := asText(doc.metadata()["name"])
		left := maxRendered
		own, err := r.scope.Place(own, &left)
		if _, unknown := template.NeedsOf(err); unknown {
			return nil, err
		}
		if err == nil && own == name {
			return doc, nil
		}
	}
	return nil, nil
}

// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// Kind is what a reference stands for.
type Kind string

// The kinds that annotations refer to.
const (
	KindTask     Kind = kindTask
	KindPipeline Kind = kindPipeline
)

// References reads what annotations refer to. It returns the same text for all pipelines of one
// event.
type References interface {
	// Read returns the text of a reference. An error that the author can fix is Invalid; the caller
	// adds the annotation's name. Path of the file says for people where the text was found.
	Read(ctx context.Context, kind Kind, reference string) (git.File, error)
}

// maxReferences limits the references of one PipelineRun, because each may be a call to a third
// party.
const maxReferences = 100

// taskAnnotation is an annotation that names tasks to fetch; its group is what they are ordered by.
var taskAnnotation = regexp.MustCompile(`^` + regexp.QuoteMeta(pipelinesascode.GroupName) + `/task(?:-([0-9]+))?$`)

const pipelineAnnotation = pipelinesascode.GroupName + "/pipeline"

// reference is one entry of an annotation.
type reference struct{ annotation, value string }

// pipelineReference returns the reference in the annotation pipeline, or "" when there is none.
func (r *renderer) pipelineReference(doc *document) (string, error) {
	annotations, err := doc.annotations()
	if err != nil {
		return "", err
	}
	text, found := annotations[pipelineAnnotation]
	if !found || r.references == nil {
		return "", nil
	}
	values, err := r.entries(pipelineAnnotation, text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", doc.place(), err)
	}
	if len(values) != 1 {
		return "", fault.Invalidf(reasonBadAnnotation, "%s: the annotation %s refers to %d pipelines: name one", doc.place(),
			pipelineAnnotation, len(values))
	}
	return values[0], nil
}

// taskReferences returns the references in a document's task annotations: those of task first, then
// those of task-N by number.
func (r *renderer) taskReferences(doc *document) ([]reference, error) {
	annotations, err := doc.annotations()
	if err != nil || r.references == nil {
		return nil, err
	}
	names := slices.DeleteFunc(slices.Collect(maps.Keys(annotations)),
		func(name string) bool { return !taskAnnotation.MatchString(name) })
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(a, b)) })
	var all []reference
	for _, name := range names {
		values, err := r.entries(name, annotations[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doc.place(), err)
		}
		for _, value := range values {
			all = append(all, reference{name, value})
		}
	}
	return all, nil
}

// order returns the number of task-N, or -1 for task.
func order(annotation string) int {
	n, err := strconv.Atoi(taskAnnotation.FindStringSubmatch(annotation)[1])
	if err != nil {
		return -1
	}
	return n
}

// hidden replaces a placeholder while a list is split.
var hidden = regexp.MustCompile("\x00([0-9]+)\x00")

// entries splits an annotation's value, and then replaces the placeholders in each entry. So a
// branch whose name has a comma cannot add a reference. A placeholder that is the whole value may
// be a list.
func (r *renderer) entries(annotation, text string) ([]string, error) {
	text = strings.TrimSpace(text)
	if template.Whole(text) {
		list, err := r.scope.Text(text)
		if err != nil {
			return nil, err
		}
		return match.List(annotation, list)
	}
	var originals []string
	masked := template.Replace(strings.ReplaceAll(text, "\x00", ""), func(original string) string {
		originals = append(originals, original)
		return "\x00" + strconv.Itoa(len(originals)-1) + "\x00"
	})
	values, err := match.List(annotation, masked)
	if err != nil {
		return nil, err
	}
	for i, value := range values {
		if values[i], err = r.fill(value, originals); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// fill replaces the placeholders by their values.
func (r *renderer) fill(entry string, originals []string) (string, error) {
	var failed error
	filled := hidden.ReplaceAllStringFunc(entry, func(mark string) string {
		n, err := strconv.Atoi(strings.Trim(mark, "\x00"))
		if err != nil || n >= len(originals) {
			return ""
		}
		text, err := r.scope.Text(originals[n])
		if failed == nil {
			failed = err
		}
		return text
	})
	return filled, failed
}

// fetch reads a reference and returns its documents of a kind, parsed.
func (r *renderer) fetch(ctx context.Context, user *document, ref reference, kind Kind) ([]*document, error) {
	if r.fetched++; r.fetched > maxReferences {
		return nil, fault.Invalidf(reasonTooManyReferences,
			"%s: the annotations of the PipelineRun and its Pipeline name more than %d references", user.place(), maxReferences)
	}
	file, err := r.references.Read(ctx, kind, ref.value)
	if err != nil {
		return nil, fmt.Errorf("%s: annotation %s: %w", user.place(), ref.annotation, err)
	}
	set := newSet([]git.File{file}, false, r.spent)
	r.spent = set.spent
	documents := set.tasks
	if kind == KindPipeline {
		documents = set.pipelines
	}
	if err := set.unreadable(len(documents) > 0); err != nil {
		return nil, fmt.Errorf("%s: annotation %s: %w", user.place(), ref.annotation, err)
	}
	if len(documents) == 0 {
		return nil, fault.Invalidf(reasonBadReference, "%s: annotation %s: %s holds no %s of %s or %s",
			user.place(), ref.annotation, file.Path, kind, apiV1, apiV1beta1)
	}
	for _, doc := range documents {
		doc.by = fmt.Sprintf("%s: annotation %s: ", user.place(), ref.annotation)
	}
	return documents, nil
}

// unreadable returns the first mistake of a document that is not read. If another document was
// found, an unknown kind is no mistake, because the author may not be able to change the file.
func (s *Set) unreadable(found bool) error {
	for _, def := range s.definitions {
		ignored := found && def.Err != nil && fault.Of(def.Err).Reason == reasonUnknownKind
		if def.Err != nil && !ignored && s.runs[position{def.File, def.Document}] == nil {
			return def.Err
		}
	}
	return nil
}

// relative joins a task reference of a pipeline to the directory of the pipeline's own reference.
// It does so if the pipeline was read from a web address or a path, and the reference is a path.
// Names on a hub and whole addresses do not change.
func relative(pipeline, task string) string {
	isPath := !strings.Contains(task, "://") && (strings.Contains(task, "/") || isYAML(task))
	scheme, _, isAddress := strings.Cut(pipeline, "://")
	switch {
	case !isPath:
		return task
	case isAddress && (scheme == "http" || scheme == "https"):
		return joinAddress(pipeline, task)
	case !isAddress && strings.Contains(pipeline, "/"):
		return path.Join(path.Dir(pipeline), task)
	}
	return task
}

func isYAML(name string) bool {
	name, _, _ = strings.Cut(name, "?")
	return path.Ext(name) == ".yaml" || path.Ext(name) == ".yml"
}

// joinAddress keeps the pipeline's query unless the reference has one. It keeps every escape as it
// is written: %2F in the name of a branch must stay one segment.
func joinAddress(pipeline, task string) string {
	base, err := url.Parse(pipeline)
	if err != nil {
		return task
	}
	ref, err := url.Parse(task)
	if err != nil {
		return task
	}
	joined := path.Join(path.Dir(base.EscapedPath()), ref.EscapedPath())
	plain, err := url.PathUnescape(joined)
	if err != nil {
		return task
	}
	base.Path, base.RawPath = plain, joined
	if ref.RawQuery != "" {
		base.RawQuery = ref.RawQuery
	}
	return base.String()
}

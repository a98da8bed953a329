// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	pipelinev1beta1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// maxRendered bounds a PipelineRun with everything inlined, in bytes of JSON: the API server's limit of a request.
const maxRendered = 3 << 20

// Render returns the PipelineRun a definition describes, complete: variables replaced, converted to tekton.dev/v1,
// Pipelines and Tasks inlined, those of annotations before those of .tekton. References with a resolver and to other
// groups are left to Tekton. Name or generateName are the author's. Errors are fault.Invalid and name the file, the line
// or field, and what to do, or they are of references.
//
// With nil references annotations are not followed, and a Pipeline or Task that .tekton does not define is left to
// Tekton, which looks for it in the cluster.
func (s *Set) Render(ctx context.Context, def Definition, vars map[string]string, references References) (*pipelinev1.PipelineRun, error) {
	if err := cmp.Or(def.Err, def.Duplicate); err != nil {
		return nil, err
	}
	doc, found := s.runs[position{def.File, def.Document}]
	if !found {
		return nil, fmt.Errorf("document %d of %s is not a PipelineRun of this set", def.Document, def.File)
	}
	r := &renderer{set: s, vars: vars, references: references, left: maxRendered, tasks: map[string]*inlineTask{}}
	run, err := r.pipelineRun(doc)
	if err != nil {
		return nil, err
	}
	if err := r.inlinePipeline(ctx, doc, run); err != nil {
		return nil, err
	}
	if run.Spec.PipelineSpec == nil {
		return run, nil
	}
	if err := r.fetchTasks(ctx, doc); err != nil {
		return nil, err
	}
	for _, tasks := range [][]pipelinev1.PipelineTask{run.Spec.PipelineSpec.Tasks, run.Spec.PipelineSpec.Finally} {
		if err := r.inlineTasks(doc, tasks); err != nil {
			return nil, err
		}
	}
	return run, nil
}

// OriginalName is the name by which the author knows a rendered PipelineRun: its name, or its generateName without the
// trailing dash, with the variables replaced.
func OriginalName(run *pipelinev1.PipelineRun) string {
	if name := strings.TrimSuffix(run.Name, "-"); name != "" {
		return name
	}
	return strings.TrimSuffix(run.GenerateName, "-")
}

// renderer renders one PipelineRun.
type renderer struct {
	set  *Set
	vars map[string]string
	// references is nil when annotations are not followed; fetched counts what was read of it.
	references References
	fetched    int
	// pipelineDoc is the Pipeline that was inlined, and pipelineAt the reference it was read from, if it was.
	pipelineDoc *document
	pipelineAt  string
	// remote are the Tasks of annotations; of one name the first is used.
	remote []*document
	// left is how many bytes of JSON may still be added.
	left int
	// tasks are those that were inlined before.
	tasks map[string]*inlineTask
}

func (r *renderer) pipelineRun(doc *document) (*pipelinev1.PipelineRun, error) {
	run := &pipelinev1.PipelineRun{}
	_, err := r.read(doc, run, &pipelinev1beta1.PipelineRun{})
	run.SetGroupVersionKind(pipelinev1.SchemeGroupVersion.WithKind(kindPipelineRun))
	return run, err
}

func (r *renderer) pipeline(doc *document) (*pipelinev1.Pipeline, error) {
	pipeline := &pipelinev1.Pipeline{}
	_, err := r.read(doc, pipeline, &pipelinev1beta1.Pipeline{})
	return pipeline, err
}

// read replaces a document's variables and decodes it, by way of the old version if it is written in that. It returns
// the size of the document, which it has counted.
func (r *renderer) read(doc *document, into, old apis.Convertible) (int, error) {
	x := newExpander(r.vars)
	tree := x.mapping(doc.tree)
	if x.left < 0 {
		return 0, tooLarge(doc)
	}
	if x.collision != "" {
		return 0, fault.Invalidf("DuplicateKey", "%s: with the variables replaced the key %s is there twice: rename one", doc.place(), x.collision)
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return 0, fault.Invalidf("BadYAML", "%s: %w", doc.place(), err)
	}
	if err := r.spend(doc, len(data)); err != nil {
		return 0, err
	}
	if doc.apiVersion == apiV1 {
		return len(data), decode(doc, data, into)
	}
	if err := decode(doc, data, old); err != nil {
		return 0, err
	}
	keepBundles(old)
	if err := old.ConvertTo(context.Background(), into); err != nil {
		return 0, fault.Invalidf("BadConversion", "%s: cannot be converted to %s: %w", doc.place(), apiV1, err)
	}
	return len(data), nil
}

// spend counts bytes that are added to the PipelineRun.
func (r *renderer) spend(doc *document, size int) error {
	r.left -= size
	if r.left < 0 {
		return tooLarge(doc)
	}
	return nil
}

func tooLarge(doc *document) error {
	return fault.Invalidf("TooLarge", "%s: with its variables replaced and its tasks inlined the PipelineRun is larger than %d bytes, "+
		"which no cluster accepts", doc.place(), maxRendered)
}

// decode reads JSON leniently: unknown fields are ignored, as Tekton's API does, values of a wrong type are not.
func decode(doc *document, data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fault.Invalidf("BadType", "%s: a value at %s must be %s, not %s", doc.place(), field(wrong.Field), wantedKind(wrong.Type), givenKind(wrong.Value))
	}
	return fault.Invalidf("BadType", "%s: %w", doc.place(), err)
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

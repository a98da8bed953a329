// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	pipelinev1beta1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/yamlerror"
)

// maxRendered limits a PipelineRun with everything inlined, in bytes of JSON. It is the API
// server's limit of a request.
const maxRendered = 3 << 20

// Render returns the complete PipelineRun of a definition. Placeholders are replaced, and the
// object is converted to tekton.dev/v1. Pipelines and Tasks are inlined, those of annotations
// before those of .tekton. References with a resolver and to other groups are left to Tekton. Name
// or generateName are the author's. Secrets are markers that template.Fill replaces.
//
// Errors are *template.Unknown when something must be known first, fault.Invalid that name the
// file, the line or field, and what to do, or they are of references. None holds a secret.
//
// With nil references annotations are not followed, and a Pipeline or Task that .tekton does not
// define is left to Tekton, which looks for it in the cluster.
func (s *Set) Render(
	ctx context.Context, def Definition, scope *template.Scope, references References,
) (*pipelinev1.PipelineRun, error) {
	if err := cmp.Or(def.Err, def.BadName); err != nil {
		return nil, err
	}
	doc, found := s.runs[position{def.File, def.Document}]
	if !found {
		return nil, fmt.Errorf("document %d of %s is not a PipelineRun of this set", def.Document, def.File)
	}
	r := &renderer{
		set:        s,
		scope:      scope,
		references: references,
		spent:      s.spent,
		left:       maxRendered,
		tasks:      map[string]*inlineTask{},
	}
	if s.pace != nil {
		r.pace = func(work time.Duration) error { return s.pace(ctx, work) }
	}
	run, err := r.render(ctx, doc)
	if err != nil {
		return nil, scope.Conceal(err)
	}
	return run, nil
}

func (r *renderer) render(ctx context.Context, doc *document) (*pipelinev1.PipelineRun, error) {
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
	return run, fewSteps(doc, run.Spec.PipelineSpec)
}

// OriginalName returns the author's name of a rendered PipelineRun: its name, or its generateName
// with its dash, with the variables replaced.
func OriginalName(run *pipelinev1.PipelineRun) string {
	return cmp.Or(run.Name, run.GenerateName)
}

// renderer renders one PipelineRun.
type renderer struct {
	set   *Set
	scope *template.Scope
	// references is nil when annotations are not followed; fetched counts what was read of it.
	references References
	fetched    int
	// spent is what .tekton and the references that were read hold.
	spent budget
	// pipelineDoc is the Pipeline that was inlined, and pipelineAt the reference it was read from,
	// if it was.
	pipelineDoc *document
	pipelineAt  string
	// remote are the Tasks of annotations; of one name the first is used.
	remote []*document
	// left is how many bytes of JSON may still be added, weight what those that were added weigh
	// once they are decoded.
	left, weight int
	// tasks are those that were inlined before.
	tasks map[string]*inlineTask
	// pace is Set.pace with the context; nil does not wait.
	pace func(work time.Duration) error
}

func (r *renderer) pipelineRun(doc *document) (*pipelinev1.PipelineRun, error) {
	run := &pipelinev1.PipelineRun{}
	if _, err := r.read(doc, run, &pipelinev1beta1.PipelineRun{}); err != nil {
		return nil, err
	}
	if secrets := r.scope.Secrets(); template.Held(run.Name, secrets) || template.Held(run.GenerateName, secrets) {
		return nil, doc.invalidAt(reasonSecretInName, yamlerror.Path{"metadata", "name"},
			"metadata.name holds the value of a secret, and names are shown to everybody: use another placeholder")
	}
	run.SetGroupVersionKind(pipelinev1.SchemeGroupVersion.WithKind(kindPipelineRun))
	return run, nil
}

func (r *renderer) pipeline(doc *document) (*pipelinev1.Pipeline, error) {
	pipeline := &pipelinev1.Pipeline{}
	_, err := r.read(doc, pipeline, &pipelinev1beta1.Pipeline{})
	return pipeline, err
}

// read replaces a document's placeholders and decodes it. A document in an old version is
// converted. read returns the size of the document with its secrets, and has counted that size.
func (r *renderer) read(doc *document, into, old apis.Convertible) (cost, error) {
	x := newExpander(r.scope)
	tree, err := x.expand(doc)
	if err != nil {
		return cost{}, err
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return cost{}, fault.Invalidf(reasonBadYAML, "%s: %w", doc.place(), err)
	}
	size := cost{bytes: len(template.Fill(data, r.scope.Secrets())), weight: memory.Of(data), own: x.filled}
	if err := r.spend(doc, size); err != nil {
		return cost{}, err
	}
	if doc.apiVersion == apiV1 {
		if err := decode(doc, data, into, x.plain); err != nil {
			return cost{}, err
		}
		return size, writable(doc, into, data, into)
	}
	if err := decode(doc, data, old, x.plain); err != nil {
		return cost{}, err
	}
	keepBundles(old)
	if err := old.ConvertTo(context.Background(), into); err != nil {
		return cost{}, fault.Invalidf(reasonBadConversion, "%s: cannot be converted to %s: %w", doc.place(), apiV1, err)
	}
	return size, writable(doc, into, data, old)
}

// writable refuses an object that can be read but not be written again, such as a parameter without
// a value in Tekton's type. data is what was read as another object.
func writable(doc *document, object any, data []byte, read any) error {
	if _, err := json.Marshal(object); err != nil {
		return doc.refused(data, read, err)
	}
	return nil
}

// cost is what a document adds to a PipelineRun. It is own if the document has placeholders,
// because their values may differ in another PipelineRun.
type cost struct {
	bytes, weight int
	own           bool
}

// spend counts what is added to the PipelineRun. An empty step is two bytes, and takes half a
// kilobyte when it is decoded.
func (r *renderer) spend(doc *document, size cost) error {
	if r.pace != nil {
		if err := r.pace(size.work()); err != nil {
			return err
		}
	}
	r.left -= size.bytes
	r.weight += size.weight
	if r.left < 0 {
		return tooLarge(doc)
	}
	if r.weight > memory.MaxAnswer {
		return fault.Invalidf(
			reasonTooLarge,
			"%s: with its tasks inlined the PipelineRun holds too many values: use fewer tasks and steps, or refer to Tasks with a resolver",
			doc.place(),
		)
	}
	return nil
}

func tooLarge(doc *document) error {
	return fault.Invalidf(
		reasonTooLarge,
		"%s: with its variables replaced and its tasks inlined the PipelineRun is larger than %d bytes, "+
			"which no cluster accepts",
		doc.place(),
		maxRendered,
	)
}

// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"maps"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	pipelinev1beta1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// inlineTask is a Task that is inlined, and what it adds.
type inlineTask struct {
	task *pipelinev1.Task
	size cost
}

// inlinePipeline replaces a reference to a Pipeline of the annotation or of .tekton by its spec.
func (r *renderer) inlinePipeline(ctx context.Context, doc *document, run *pipelinev1.PipelineRun) error {
	ref := run.Spec.PipelineRef
	if ref == nil || ref.Name == "" || ref.Resolver != "" || foreign(ref.APIVersion) {
		return nil
	}
	if err := r.findPipeline(ctx, doc, ref.Name); err != nil {
		return err
	}
	definition := r.pipelineDoc
	if definition == nil && r.references == nil {
		return nil
	}
	if definition == nil {
		return fault.Invalidf(
			reasonMissingPipeline,
			"%s: PipelineRun %s refers to Pipeline %s, which neither a file in .tekton nor the "+
				"annotation %s defines: add it, or refer to it with a resolver",
			doc.place(),
			OriginalName(run),
			ref.Name,
			pipelineAnnotation,
		)
	}
	pipeline, err := r.pipeline(definition)
	if err != nil {
		return err
	}
	run.Spec.PipelineSpec = &pipeline.Spec
	run.Spec.PipelineRef = nil
	return nil
}

// findPipeline looks for a Pipeline in the text of the annotation's reference, then in .tekton.
func (r *renderer) findPipeline(ctx context.Context, doc *document, name string) error {
	at, err := r.pipelineReference(doc)
	if err != nil {
		return err
	}
	if at != "" {
		fetched, err := r.fetch(ctx, doc, reference{pipelineAnnotation, at}, KindPipeline)
		if err != nil {
			return err
		}
		if r.pipelineDoc, err = r.named(fetched, name); err != nil || r.pipelineDoc != nil {
			r.pipelineAt = at
			return err
		}
	}
	r.pipelineDoc, err = r.named(r.set.pipelines, name)
	return err
}

// fetchTasks reads the Tasks that annotations refer to: those of the PipelineRun, then those of its
// Pipeline.
func (r *renderer) fetchTasks(ctx context.Context, run *document) error {
	for _, doc := range []*document{run, r.pipelineDoc} {
		if doc == nil {
			continue
		}
		references, err := r.taskReferences(doc)
		if err != nil {
			return err
		}
		for _, ref := range references {
			if doc == r.pipelineDoc && r.pipelineAt != "" {
				ref.value = relative(r.pipelineAt, ref.value)
			}
			tasks, err := r.fetch(ctx, doc, ref, KindTask)
			if err != nil {
				return err
			}
			r.remote = append(r.remote, tasks...)
		}
	}
	return nil
}

// inlineTasks replaces references to Tasks of annotations or of .tekton by their specs, in place.
func (r *renderer) inlineTasks(doc *document, tasks []pipelinev1.PipelineTask) error {
	for i := range tasks {
		task := &tasks[i]
		if !local(task.TaskRef) {
			continue
		}
		found, err := r.task(doc, task)
		if err != nil {
			return err
		}
		if found == nil {
			continue
		}
		task.TaskSpec = &pipelinev1.EmbeddedTask{
			TaskSpec: *found.Spec.DeepCopy(),
			Metadata: pipelinev1.PipelineTaskMetadata{
				Labels:      maps.Clone(found.Labels),
				Annotations: maps.Clone(found.Annotations),
			},
		}
		task.TaskRef = nil
	}
	return nil
}

// task returns the Task that a pipeline task refers to, and counts its size. It returns nil when
// the reference is left to Tekton.
func (r *renderer) task(doc *document, user *pipelinev1.PipelineTask) (*pipelinev1.Task, error) {
	name := user.TaskRef.Name
	if known, found := r.tasks[name]; found {
		return known.task, r.spend(doc, known.size)
	}
	definition, err := r.named(r.remote, name)
	if definition == nil && err == nil {
		definition, err = r.named(r.set.tasks, name)
	}
	if err != nil {
		return nil, err
	}
	if definition == nil && r.references == nil {
		return nil, nil
	}
	if definition == nil {
		return nil, fault.Invalidf(
			reasonMissingTask,
			"%s: pipeline task %s refers to Task %s, which neither a file in .tekton nor a task "+
				"annotation defines: add it, or refer to it with a resolver",
			doc.place(),
			user.Name,
			name,
		)
	}
	if known := r.set.same.find(definition); known != nil {
		r.tasks[name] = known
		return known.task, r.spend(doc, known.size)
	}
	return r.readTask(doc, definition, name)
}

// readTask reads a Task that was not inlined before under this name.
func (r *renderer) readTask(doc, definition *document, name string) (*pipelinev1.Task, error) {
	if definition.longTask() {
		return nil, tooManySteps(doc)
	}
	task := &pipelinev1.Task{}
	size, err := r.read(definition, task, &pipelinev1beta1.Task{})
	if err != nil {
		return nil, err
	}
	r.tasks[name] = &inlineTask{task: task, size: size}
	r.set.same.keep(definition, r.tasks[name])
	return task, nil
}

// local reports whether a reference names a Task by its name alone. Tekton handles resolvers and
// custom tasks.
func local(ref *pipelinev1.TaskRef) bool {
	if ref == nil || ref.Name == "" || ref.Resolver != "" || foreign(ref.APIVersion) {
		return false
	}
	return ref.Kind == "" || ref.Kind == pipelinev1.NamespacedTaskKind
}

func foreign(apiVersion string) bool {
	return apiVersion != "" && !strings.HasPrefix(apiVersion, tektonGroup+"/")
}

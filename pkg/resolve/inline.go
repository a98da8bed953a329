// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"maps"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	pipelinev1beta1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// tektonGroup starts the apiVersion of Tekton's own kinds.
const tektonGroup = "tekton.dev/"

// inlineTask is a Task that is inlined, and its size in bytes of JSON.
type inlineTask struct {
	task *pipelinev1.Task
	size int
}

// inlinePipeline replaces a reference to a Pipeline of .tekton by its spec.
func (r *renderer) inlinePipeline(doc *document, run *pipelinev1.PipelineRun) error {
	ref := run.Spec.PipelineRef
	if ref == nil || ref.Name == "" || ref.Resolver != "" || foreign(ref.APIVersion) {
		return nil
	}
	definition := named(r.set.pipelines, ref.Name, newExpander(r.vars))
	if definition == nil {
		return fault.Invalidf("MissingPipeline", "%s: PipelineRun %s refers to Pipeline %s, which no file in .tekton defines: "+
			"add it, or refer to it with a resolver", doc.place(), OriginalName(run), ref.Name)
	}
	pipeline, err := r.pipeline(definition)
	if err != nil {
		return err
	}
	run.Spec.PipelineSpec = &pipeline.Spec
	run.Spec.PipelineRef = nil
	return nil
}

// inlineTasks replaces references to Tasks of .tekton by their specs, in place.
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
		task.TaskSpec = &pipelinev1.EmbeddedTask{
			TaskSpec: *found.Spec.DeepCopy(),
			Metadata: pipelinev1.PipelineTaskMetadata{Labels: maps.Clone(found.Labels), Annotations: maps.Clone(found.Annotations)},
		}
		task.TaskRef = nil
	}
	return nil
}

// task returns the Task a pipeline task refers to and counts its size.
func (r *renderer) task(doc *document, user *pipelinev1.PipelineTask) (*pipelinev1.Task, error) {
	name := user.TaskRef.Name
	if known, found := r.tasks[name]; found {
		return known.task, r.spend(doc, known.size)
	}
	definition := named(r.set.tasks, name, newExpander(r.vars))
	if definition == nil {
		return nil, fault.Invalidf("MissingTask", "%s: pipeline task %s refers to Task %s, which no file in .tekton defines: "+
			"add it, or refer to it with a resolver", doc.place(), user.Name, name)
	}
	task := &pipelinev1.Task{}
	size, err := r.read(definition, task, &pipelinev1beta1.Task{})
	if err != nil {
		return nil, err
	}
	r.tasks[name] = &inlineTask{task: task, size: size}
	return task, nil
}

// local tells whether a reference is to a Task by its name alone. Resolvers and custom tasks are Tekton's.
func local(ref *pipelinev1.TaskRef) bool {
	if ref == nil || ref.Name == "" || ref.Resolver != "" || foreign(ref.APIVersion) {
		return false
	}
	return ref.Kind == "" || ref.Kind == pipelinev1.NamespacedTaskKind
}

func foreign(apiVersion string) bool {
	return apiVersion != "" && !strings.HasPrefix(apiVersion, tektonGroup)
}

// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
)

// The approximate time that a core takes to render one unit of the weight of values, and one byte
// of text. 1,000 steps with a short script take 7 ms.
const (
	perWeight = 250 * time.Nanosecond
	perByte   = 15 * time.Nanosecond
)

// work estimates how long a core takes to render something of this cost.
func (c cost) work() time.Duration {
	return time.Duration(c.weight)*perWeight + time.Duration(c.bytes)*perByte
}

// Pace is called before each piece of work with the CPU time of that piece. It returns when the
// work may start, so that rendering leaves time for other work. Rendering stops at an error and
// returns it.
type Pace func(ctx context.Context, work time.Duration) error

// Paced returns the set for one event. Its Render calls pace before each document that it reads or
// inlines once more. It remembers Tasks that are the same in all of the event's PipelineRuns. The
// returned set may not be shared between events.
func (s *Set) Paced(pace Pace) *Set {
	paced := *s
	paced.pace, paced.same = pace, &sameTasks{of: map[*document]*inlineTask{}}
	return &paced
}

// sameTasks stores the Tasks of .tekton without placeholders that were read for one event: all of
// its PipelineRuns inline the same text. Tasks of annotations are read for each PipelineRun and are
// not stored.
type sameTasks struct {
	of     map[*document]*inlineTask
	weight int
}

// keep stores a Task, unless the stored Tasks would take more than one PipelineRun may.
func (s *sameTasks) keep(definition *document, task *inlineTask) {
	if s == nil || task.size.own || !definition.local || s.weight+task.size.weight > memory.MaxAnswer {
		return
	}
	s.of[definition], s.weight = task, s.weight+task.size.weight
}

// find returns a stored Task, or nil.
func (s *sameTasks) find(definition *document) *inlineTask {
	if s == nil {
		return nil
	}
	return s.of[definition]
}

// maxSteps bounds the steps of a PipelineRun, with those of its tasks. Tekton's admission webhook,
// which all tenants share, takes a millisecond and more of a core for each, at each write, and more
// than the API server waits for some 4,000.
const maxSteps = 1000

// tooManySteps is the fault of a PipelineRun that has more.
func tooManySteps(doc *document) error {
	return fault.Invalidf(
		reasonTooManySteps,
		"%s: with its tasks inlined the PipelineRun has more than %d steps, which keeps Tekton's webhook busy for seconds: "+
			"join steps into one script, use several PipelineRuns, or refer to Tasks with a resolver",
		doc.place(),
		maxSteps,
	)
}

// fewSteps refuses a pipeline with too many steps.
func fewSteps(doc *document, pipeline *pipelinev1.PipelineSpec) error {
	steps := 0
	for _, tasks := range [][]pipelinev1.PipelineTask{pipeline.Tasks, pipeline.Finally} {
		for _, task := range tasks {
			if task.TaskSpec != nil {
				steps += len(task.TaskSpec.Steps)
			}
		}
	}
	if steps > maxSteps {
		return tooManySteps(doc)
	}
	return nil
}

// longTask reports whether a Task has too many steps, before its placeholders are replaced.
func (d *document) longTask() bool {
	spec, _ := d.tree["spec"].(map[string]any)
	steps, _ := spec["steps"].([]any)
	return len(steps) > maxSteps
}

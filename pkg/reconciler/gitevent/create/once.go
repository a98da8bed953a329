// SPDX-License-Identifier: Apache-2.0

package create

import (
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/attempt"
)

// A planned name is created once (I-2). The name alone sees to that while the PipelineRun is there; once it is deleted the
// status does, which has its UID. What is between the create and the record is described in docs/adr/0013.

// made takes note of a PipelineRun that is there, created now or before.
func (s *Step) made(a *attempt.Attempt, run *pipelinev1.PipelineRun) {
	s.Created.Note(a.Event.Name, a.Event.UID, run.Name, run.UID)
	a.Seen[run.Name] = run
	a.Record.Made()
}

// recall gives runs the UIDs that this process could not record before: one that was deleted meanwhile is not created
// again.
func (s *Step) recall(a *attempt.Attempt) {
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if !attempt.Creatable(run) {
			continue
		}
		if run.UID = s.Created.UID(a.Event.Name, a.Event.UID, run.Name); run.UID != "" {
			a.Waits.Clear(v1alpha1.StepCreate + run.Name)
			a.Record.Made()
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"fmt"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// A planned name is created once (I-2). The name alone sees to that while the PipelineRun is there;
// once it is deleted the status does, which has its UID. What is between the create and the record
// is described in docs/adr/0013.

// made takes note of a PipelineRun that is there, created now or before.
func (s *Step) made(a *attempt.Attempt, run *pipelinev1.PipelineRun) {
	s.Created.Note(a.Event.Name, a.Event.UID, run.Name, run.UID)
	a.Seen[run.Name] = run
	a.Record.Made()
}

// recall gives runs the UIDs that this process could not record before: one that was deleted
// meanwhile is not created again.
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

// refused reports whether a create is not possible, which says nothing of an earlier one whose
// answer nobody recorded: admission judges before the API server looks whether the name is taken,
// and what has used up a quota may be that very PipelineRun.
func refused(err error) bool {
	f := fault.Of(err)
	return f != nil &&
		(f.Class == fault.Invalid || f.Reason == fault.ReasonQuota || f.Reason == fault.ReasonDenialEchoesOutage || noPlace(f.Reason))
}

// landed returns our PipelineRun of the planned name if it is there although its create was
// refused; else the refusal.
func (s *Step) landed(
	ctx context.Context,
	manifest *pipelinev1.PipelineRun,
	refusal error,
) (*pipelinev1.PipelineRun, error) {
	found, err := s.Tekton.PipelineRuns(manifest.Namespace).Get(ctx, manifest.Name, metav1.GetOptions{})
	switch {
	case fault.Gone(err):
		return nil, refusal
	case err != nil:
		return nil, fault.FromKube(
			fault.VerbRead,
			fmt.Errorf("looking for PipelineRun %s/%s: %w", manifest.Namespace, manifest.Name, err),
		)
	case found.Annotations[plumbline.RunKeyAnnotation] != manifest.Annotations[plumbline.RunKeyAnnotation]:
		return nil, refusal
	}
	return found, nil
}

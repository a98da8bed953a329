// SPDX-License-Identifier: Apache-2.0

package cancel

import (
	"context"
	"encoding/json"
	"fmt"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// end tells Tekton to end the event's PipelineRuns that are cancelled, with what their pipelines do
// at the end ("finally"). What is not created yet is not created (pkg/reconciler/gitevent/create).
// A run that ends by itself meanwhile keeps its own result.
func (s *Step) end(ctx context.Context, a *attempt.Attempt) error {
	var faults []error
	over := a.Turn(attempt.ShortTurn)
	wanted, failed := s.wanted(a)
	for _, run := range attempt.InTurn(failed, wanted) {
		if err := attempt.First([]error{over(), a.Record.Confirm(ctx)}); err != nil {
			return attempt.First(append(faults, err))
		}
		err := a.Waits.Try(
			backoff.Step{Name: v1alpha1.StepCancel, Of: run.Name},
			func() error { return s.endRun(ctx, a, run) },
		)
		faults = append(faults, a.Waits.Settle(v1alpha1.StepCancel+run.Name, err))
	}
	return attempt.First(faults)
}

// wanted are the runs that are to end and have not been told to, and whether that has failed
// before. The others wait for nothing.
func (s *Step) wanted(a *attempt.Attempt) (runs []*v1alpha1.Run, failed bool) {
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if run.UID == "" || run.Result != nil || a.Event.Cancelled(run.Pipeline) == nil || ending(a.Seen[run.Name]) {
			a.Waits.Clear(v1alpha1.StepCancel + run.Name)
			continue
		}
		runs, failed = append(runs, run), failed || a.Waits.Of(v1alpha1.StepCancel+run.Name) != nil
	}
	return runs, failed
}

// ending reports whether a PipelineRun is over or was told to end, by whomever.
func ending(run *pipelinev1.PipelineRun) bool {
	return run != nil &&
		(run.IsDone() || run.Spec.Status == pipelinev1.PipelineRunSpecStatusCancelledRunFinally || run.Spec.Status == pipelinev1.PipelineRunSpecStatusCancelled)
}

func (s *Step) endRun(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) error {
	// The API server takes the UID for a precondition: another object of that name is not changed.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": run.UID,
		},
		"spec": map[string]any{"status": pipelinev1.PipelineRunSpecStatusCancelledRunFinally},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch of PipelineRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	patched, err := s.Tekton.PipelineRuns(run.Namespace).
		Patch(ctx, run.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil {
		a.Seen[run.Name] = patched
		return nil
	}
	return s.judge(
		ctx,
		a,
		run,
		fault.FromKube(fault.VerbPatch, fmt.Errorf("cancelling PipelineRun %s/%s: %w", run.Namespace, run.Name, err)),
	)
}

// judge looks why a run was not told to end: one that has ended meanwhile, or is gone, needs no
// more (D5).
func (s *Step) judge(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, refused *fault.Error) error {
	live, err := s.Tekton.PipelineRuns(run.Namespace).Get(ctx, run.Name, metav1.GetOptions{})
	switch {
	case fault.Gone(err), err == nil && live.UID != run.UID: // observe finds out, when its watch tells
		return nil
	case err == nil && ending(live):
		a.Seen[run.Name] = live
		return nil
	}
	return again(refused)
}

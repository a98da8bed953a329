// SPDX-License-Identifier: Apache-2.0

package cancel

import (
	"context"
	"encoding/json"
	"fmt"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// stopRuns tells Tekton to stop the event's PipelineRuns that are cancelled, and to run their
// finally tasks. A run that is not created yet is not created (pkg/reconciler/gitevent/create). A
// run that finishes by itself meanwhile keeps its own result.
func (s *Step) stopRuns(ctx context.Context, a *attempt.Attempt) error {
	runs, failed := s.wanted(a)
	return attempt.Merge(attempt.Each(ctx,
		attempt.Rotated(failed, runs),
		a.Within(attempt.ShortLimit, a.Record.Confirm),
		func(ctx context.Context, run *v1alpha1.Run) error {
			err := a.Waits.WithBackoff(backoff.Step{Name: v1alpha1.StepCancel, Of: run.Name}, func() error {
				seen, err := stop(ctx, s.Tekton.PipelineRuns(run.Namespace), run)
				if seen != nil {
					a.Seen[run.Name] = seen
				}
				return err
			})
			return a.Waits.Update(v1alpha1.StepCancel+run.Name, err)
		}))
}

// wanted returns the runs that must be stopped and are not, and whether stopping one has failed
// before. It clears the waits of all other runs.
func (s *Step) wanted(a *attempt.Attempt) (runs []*v1alpha1.Run, failed bool) {
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if !mustStop(run, a.Event.Cancelled(run.Pipeline), a.Seen[run.Name]) {
			a.Waits.Clear(v1alpha1.StepCancel + run.Name)
			continue
		}
		runs, failed = append(runs, run), failed || a.Waits.Of(v1alpha1.StepCancel+run.Name) != nil
	}
	return runs, failed
}

// mustStop reports whether a run that is cancelled goes on and was not told to stop. seen is its
// PipelineRun, nil if that is not known.
func mustStop(run *v1alpha1.Run, why *v1alpha1.Cancellation, seen *pipelinev1.PipelineRun) bool {
	return run.UID != "" && run.Result == nil && why != nil && !stopping(seen)
}

// stopping reports whether a PipelineRun is finished, or is being stopped by any user or
// controller.
func stopping(run *pipelinev1.PipelineRun) bool {
	return run != nil &&
		(run.IsDone() || run.Spec.Status == pipelinev1.PipelineRunSpecStatusCancelledRunFinally ||
			run.Spec.Status == pipelinev1.PipelineRunSpecStatusCancelled)
}

// stop tells Tekton to stop a run, and returns its PipelineRun as it is then, nil if that is not
// known.
func stop(ctx context.Context, runs tektonv1.PipelineRunInterface, run *v1alpha1.Run) (*pipelinev1.PipelineRun, error) {
	// The API server takes the UID as a precondition: another object of that name is not changed.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": run.UID},
		"spec":     map[string]any{"status": pipelinev1.PipelineRunSpecStatusCancelledRunFinally},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the patch of PipelineRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	patched, err := runs.Patch(ctx, run.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil {
		return patched, nil
	}
	refused := fault.FromKube(fault.VerbPatch,
		fmt.Errorf("cancelling PipelineRun %s/%s: %w", run.Namespace, run.Name, err))
	live, err := runs.Get(ctx, run.Name, metav1.GetOptions{})
	switch {
	case fault.Gone(err), err == nil && live.UID != run.UID: // the observe step finds out, when its watch reports it
		return nil, nil
	case err == nil && stopping(live): // it finished meanwhile (D5)
		return live, nil
	}
	return nil, refused.AsTransient()
}

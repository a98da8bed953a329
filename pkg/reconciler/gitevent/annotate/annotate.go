// SPDX-License-Identifier: Apache-2.0

// Package annotate is the step that writes onto PipelineRuns what the Git service returned.
package annotate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
)

// Step patches runs with an accepted check, and records a digest of each patch.
type Step struct {
	Tekton    tektonv1.PipelineRunsGetter
	Providers map[string]provider.Provider
	Metrics   *metrics.Metrics
}

// Do patches what the Git service returned onto the PipelineRuns. A failure is logged, counted and
// requeued with the workqueue's backoff. It is never reported. Only the end of the event waits for
// it, for an hour (D1, I-10).
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	failed := false
	exceeded := a.TimeLimit(attempt.LongLimit)
	proceed := func(ctx context.Context) error {
		if err := exceeded(); err != nil { // no call is made when the time is over
			return err
		}
		return a.Record.Confirm(ctx)
	}
	return attempt.Merge(attempt.Each(ctx,
		attempt.Rotated(a.Waits.Of(v1alpha1.StepAnnotate) != nil, s.Unpatched(a)),
		proceed,
		func(ctx context.Context, run *v1alpha1.Run) error {
			patch, digest := s.patchOf(a, run)
			err := a.Waits.WithBackoff(
				backoff.Step{Name: v1alpha1.StepAnnotate, Of: run.Name, Version: digest},
				func() error { return s.patchRun(ctx, run, patch) },
			)
			switch {
			case err == nil:
				run.Patched = digest
			case attempt.Skipped(err):
			case failed: // knative logs the first error, which Do returns
				logging.FromContext(ctx).Errorw("Patching failed", "error", err)
			default:
				failed = true
			}
			return err
		}))
}

func (s *Step) patchRun(ctx context.Context, run *v1alpha1.Run, patch []byte) error {
	_, err := s.Tekton.PipelineRuns(run.Namespace).Patch(ctx, run.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil || fault.Gone(err) { // a run that is gone needs no annotation
		return nil
	}
	s.Metrics.PatchFailed(ctx, fault.FromKube(fault.VerbPatch, err))
	return notPatched(run, err)
}

// Unpatched returns the runs that do not carry what they should.
func (s *Step) Unpatched(a *attempt.Attempt) []*v1alpha1.Run {
	var runs []*v1alpha1.Run
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if patch, digest := s.patchOf(a, run); patch != nil && digest != run.Patched {
			runs = append(runs, run)
		}
	}
	return runs
}

// patchOf returns the patch of one run of an event.
func (s *Step) patchOf(a *attempt.Attempt, run *v1alpha1.Run) (patch []byte, digest string) {
	service, known := s.Providers[a.Event.Spec.Provider]
	if !known { // and so nothing reports
		return nil, ""
	}
	return patchOf(service.Metadata, run, a.Accepted(run.Name))
}

// patchOf returns what a run should carry in addition to what it was created with, and a digest of
// it; nil if there is nothing. metadata is the Git service's part for the ID of a check.
func patchOf(
	metadata func(id string) (labels, annotations map[string]string), run *v1alpha1.Run, check *v1alpha1.Check,
) (patch []byte, digest string) {
	if run.UID == "" || check == nil || check.ID == "" {
		return nil, ""
	}
	labels, annotations := metadata(check.ID)
	if check.Concluded {
		labels[pipelinesascode.State] = pipelinesascode.StateCompleted
		annotations[pipelinesascode.State] = pipelinesascode.StateCompleted
	}
	if len(labels)+len(annotations) == 0 {
		return nil, ""
	}
	patch = resources.AnnotationPatch(labels, annotations)
	sum := sha256.Sum256(patch)
	return patch, hex.EncodeToString(sum[:8])
}

// notPatched keeps the reason of the refusal and turns it into a Transient fault, which the
// workqueue retries: no refusal, not even one that an operator must fix, may stop the attempts
// (docs/adr/0003). The API server's error itself is not in the chain. knative would keep a conflict
// out of the error log, and every failed patch must be in that log.
func notPatched(run *v1alpha1.Run, err error) error {
	refused := fmt.Errorf("failed to patch pipelinerun %s/%s: %w", run.Namespace, run.Name, err)
	return fault.FromKube(fault.VerbPatch, refused).AsTransient()
}

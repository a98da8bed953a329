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

// Step takes the runs with an accepted check, and gives digests of what was patched.
type Step struct {
	Tekton    tektonv1.PipelineRunsGetter
	Providers map[string]provider.Provider
	Metrics   *metrics.Metrics
}

// Do patches what the Git service returned onto the PipelineRuns. A failure is logged, counted and
// requeued with the workqueue's backoff; it is never reported. Nothing waits for it but the end of
// the event, for an hour (D1, I-10).
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	var faults []error
	over := a.Turn(attempt.LongTurn)
	for _, run := range attempt.InTurn(a.Waits.Of(v1alpha1.StepAnnotate) != nil, s.Unpatched(a)) {
		patch, digest := s.metadata(a, run)
		if err := over(); err != nil {
			return attempt.First(append(faults, err))
		}
		if err := a.Record.Confirm(ctx); err != nil {
			return attempt.First(append(faults, err))
		}
		err := a.Waits.Try(
			backoff.Step{Name: v1alpha1.StepAnnotate, Of: run.Name, Version: digest},
			func() error { return s.patchRun(ctx, run, patch) },
		)
		if err == nil {
			run.Patched = digest
		} else if told := attempt.First(faults); told != nil && !attempt.Skipped(told) && !attempt.Skipped(err) { // knative logs the first that is returned
			logging.FromContext(ctx).Errorw("Patching failed", "error", err)
		}
		faults = append(faults, err)
	}
	return attempt.First(faults)
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
		if patch, digest := s.metadata(a, run); patch != nil && digest != run.Patched {
			runs = append(runs, run)
		}
	}
	return runs
}

// notPatched keeps the reason of the refusal and makes the retry the workqueue's: whatever refuses
// the patch, an operator included, must not slow down or stop the attempts (docs/adr/0003). The API
// server's error itself is not in the chain: knative keeps what it recognises as a conflict out of
// the error log, where every failed patch belongs.
func notPatched(run *v1alpha1.Run, err error) error {
	f := fault.FromKube(fault.VerbPatch, fmt.Errorf("failed to patch pipelinerun %s/%s: %w", run.Namespace, run.Name, err))
	return fault.Transientf(f.Reason, "%s", f.Message)
}

// metadata is what a run should carry now, nil while there is nothing to add to what it was created
// with.
func (s *Step) metadata(a *attempt.Attempt, run *v1alpha1.Run) (patch []byte, digest string) {
	check := a.Accepted(run.Name)
	if run.UID == "" || check == nil || check.ID == "" {
		return nil, ""
	}
	service, known := s.Providers[a.Event.Spec.Provider]
	if !known { // and so nothing reports
		return nil, ""
	}
	labels, annotations := service.Metadata(check.ID)
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

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/resources"
	"github.com/plumbline-ci/plumbline/pkg/retry"
)

// annotate patches what the Git service returned onto the PipelineRuns. A failure is logged, counted and requeued with
// the workqueue's backoff; it is never reported and nothing waits for it (D1, I-10).
func (r *Reconciler) annotate(ctx context.Context, w *work) error {
	var faults []error
	over := w.turn(longTurn)
	for _, run := range inTurn(w.wait(stepAnnotate) != nil, w.unpatched()) {
		patch, digest := w.metadata(run)
		if err := over(); err != nil {
			return first(append(faults, err))
		}
		err := w.try(retry.Step{Name: stepAnnotate, Of: run.Name, Version: digest}, func() error { return r.patchRun(ctx, run, patch) })
		if err == nil {
			run.Patched = digest
		} else if told := first(faults); told != nil && !skipped(told) && !skipped(err) { // knative logs the first that is returned
			logging.FromContext(ctx).Errorw("Patching failed", "error", err)
		}
		faults = append(faults, err)
	}
	return first(faults)
}

func (r *Reconciler) patchRun(ctx context.Context, run *v1alpha1.Run, patch []byte) error {
	_, err := r.tekton.PipelineRuns(run.Namespace).Patch(ctx, run.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil || fault.Gone(err) { // a run that is gone needs no annotation
		return nil
	}
	r.metrics.patchFailed(ctx, fault.FromKube(fault.VerbPatch, err))
	return notPatched(run, err)
}

// unpatched are the runs that do not carry what they should.
func (w *work) unpatched() []*v1alpha1.Run {
	var runs []*v1alpha1.Run
	for i := range w.event.Status.Runs {
		run := &w.event.Status.Runs[i]
		if patch, digest := w.metadata(run); patch != nil && digest != run.Patched {
			runs = append(runs, run)
		}
	}
	return runs
}

// notPatched keeps the reason of the refusal and makes the retry the workqueue's: whatever refuses the patch, an
// operator included, must not slow down or stop the attempts (docs/adr/0003). The API server's error itself is not in
// the chain: knative keeps what it recognises as a conflict out of the error log, where every failed patch belongs.
func notPatched(run *v1alpha1.Run, err error) error {
	f := fault.FromKube(fault.VerbPatch, fmt.Errorf("failed to patch pipelinerun %s/%s: %w", run.Namespace, run.Name, err))
	return fault.Transientf(f.Reason, "%s", f.Message)
}

// metadata is what a run should carry now, nil while there is nothing to add to what it was created with.
func (w *work) metadata(run *v1alpha1.Run) (patch []byte, digest string) {
	check := w.accepted(run.Name)
	if run.UID == "" || check == nil || check.ID == "" {
		return nil, ""
	}
	service, known := w.r.Providers[w.event.Spec.Provider]
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

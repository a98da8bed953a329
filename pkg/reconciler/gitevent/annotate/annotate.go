// SPDX-License-Identifier: Apache-2.0

// Package annotate is the step that writes onto PipelineRuns what the Git service returned.
package annotate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
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
		attempt.Rotated(a.Waits.Of(v1alpha1.StepAnnotate) != nil, s.unpatched(a)),
		proceed,
		func(ctx context.Context, o object) error {
			err := a.Waits.WithBackoff(backoff.Step{Name: v1alpha1.StepAnnotate, Of: o.name, Version: o.digest},
				func() error { return s.patchRun(ctx, o) })
			switch {
			case err == nil:
				*o.patched = o.digest
			case attempt.Skipped(err):
			case failed: // knative logs the first error, which Do returns
				logging.FromContext(ctx).Errorw("Patching failed", "error", err)
			default:
				failed = true
			}
			return err
		}))
}

func (s *Step) patchRun(ctx context.Context, o object) error {
	runs := s.Tekton.PipelineRuns(o.of.Namespace)
	_, err := runs.Patch(ctx, o.name, types.MergePatchType, o.patch, metav1.PatchOptions{})
	if err == nil || fault.Gone(err) { // a run that is gone needs no annotation
		return nil
	}
	s.Metrics.PatchFailed(ctx, fault.FromKube(fault.VerbPatch, err))
	return notPatched(o, err)
}

// Unpatched returns the runs with a PipelineRun that does not carry what it should.
func (s *Step) Unpatched(a *attempt.Attempt) (runs []*v1alpha1.Run) {
	for _, o := range s.unpatched(a) {
		if n := len(runs); n == 0 || runs[n-1] != o.of { // the objects of a run follow each other
			runs = append(runs, o.of)
		}
	}
	return runs
}

// object is a PipelineRun of a run: that of an earlier attempt, or the current one.
type object struct {
	of   *v1alpha1.Run
	name string
	// finished is true for an earlier attempt, once the next one exists. Until then the sweep finds
	// no other PipelineRun of the check if the event is deleted.
	finished bool
	// started is true once nothing holds it pending.
	started bool
	// patched is the digest of its last patch.
	patched *string
	// patch is what it should carry in addition to what it was created with, and digest its digest.
	patch  []byte
	digest string
}

// unpatched returns the PipelineRuns that do not carry what they should.
func (s *Step) unpatched(a *attempt.Attempt) (objects []object) {
	service, known := provider.For(s.Providers, &a.Event.Spec)
	if !known { // and so nothing reports
		return nil
	}
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		for _, o := range objectsOf(run) {
			o.started = started(run, a.Seen[o.name])
			o.patch, o.digest = patchOf(service.Metadata, o, a.Accepted(run.Key()))
			if o.patch != nil && o.digest != *o.patched {
				objects = append(objects, o)
			}
		}
	}
	return objects
}

// objectsOf returns the PipelineRuns of a run that are known to have existed.
func objectsOf(run *v1alpha1.Run) (objects []object) {
	for i := range run.Attempts {
		earlier := &run.Attempts[i]
		replaced := i+1 < len(run.Attempts) || run.UID != ""
		objects = append(objects, object{of: run, name: earlier.Name, finished: replaced, patched: &earlier.Patched})
	}
	if run.UID != "" {
		objects = append(objects, object{of: run, name: run.Name, patched: &run.Patched})
	}
	return objects
}

// started reports whether no other component (Kueue, for example) holds a PipelineRun pending.
// found may be nil for a finished one.
func started(run *v1alpha1.Run, found *pipelinev1.PipelineRun) bool {
	return run.Result != nil || found != nil && found.Spec.Status != pipelinev1.PipelineRunSpecStatusPending
}

// patchOf returns what a PipelineRun should carry in addition to what it was created with, and a
// digest of it; nil if there is nothing. metadata is the Git service's part for the ID of a check.
func patchOf(
	metadata func(id string) (labels, annotations map[string]string), o object, check *v1alpha1.Check,
) (patch []byte, digest string) {
	if check == nil || check.ID == "" && !check.Concluded {
		return nil, ""
	}
	labels, annotations := map[string]string{}, map[string]string{}
	if check.ID != "" { // without one, the result is shown nowhere (comment_strategy)
		labels, annotations = metadata(check.ID)
	}
	if check.Concluded || o.finished {
		resources.MarkReported(labels, annotations, o.of.WithoutState)
	}
	if len(labels)+len(annotations) == 0 {
		return nil, ""
	}
	if o.started { // in the same patch: alone it would be another call for each run
		annotations[pipelinesascode.StartReported] = "true"
	}
	patch = resources.AnnotationPatch(labels, annotations)
	sum := sha256.Sum256(patch)
	return patch, hex.EncodeToString(sum[:8])
}

// notPatched keeps the reason of the refusal and turns it into a Transient fault, which the
// workqueue retries: no refusal, not even one that an operator must fix, may stop the attempts
// (docs/adr/0003). The API server's error itself is not in the chain. knative would keep a conflict
// out of the error log, and every failed patch must be in that log.
func notPatched(o object, err error) error {
	refused := fmt.Errorf("failed to patch pipelinerun %s/%s: %w", o.of.Namespace, o.name, err)
	return fault.FromKube(fault.VerbPatch, refused).AsTransient()
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/retry"
)

// echoLimit is how long a denial whose text echoes an outage is retried before it is believed (C11).
const echoLimit = 10 * time.Minute

// create makes the recorded PipelineRuns that do not exist yet. Each waits for itself: one that is refused or has to
// wait does not stop the others.
func (r *Reconciler) create(ctx context.Context, w *work) []error {
	var faults []error
	over := w.turn(longTurn)
	w.recall()
	for _, run := range w.uncreated() {
		if err := first([]error{w.recordMade(ctx, recordAfter), over()}); err != nil {
			return append(faults, err)
		}
		step := stepCreate + run.Name
		err := w.due(step, func() error {
			return w.try(retry.Step{Name: stepCreate, Of: run.Name}, func() error {
				return w.traced(ctx, step, func(ctx context.Context) error { return r.createRun(ctx, w, run) })
			})
		})
		faults = append(faults, w.settle(step, w.judge(step, run, err)))
		if f := fault.Of(err); f != nil && f.Reason == reasonPaused {
			return faults // somebody else knows better what to create
		}
	}
	w.refuseUnserved()
	return faults
}

// refuseUnserved changes the disposition of an event that turns out to have no place to run in, or that was given up: of
// its runs none was created, and none will be. Its delivery may then be processed again.
func (w *work) refuseUnserved() {
	s := &w.event.Status
	if !w.decided() || len(s.Runs) == 0 {
		return
	}
	for i := range s.Runs {
		if run := &s.Runs[i]; run.UID != "" || run.Result == nil || !noPlace(run.Result.Reason) && run.Result.Reason != reasonGivenUp {
			return
		}
	}
	s.Disposition, s.Plan.Reason, s.Plan.Message = v1alpha1.DispositionRefused, s.Runs[0].Result.Reason, s.Runs[0].Result.Message
}

// noPlace tells whether a run can never be created, for no fault of its author: the place it was to run in is gone, or what
// was to run.
func noPlace(reason string) bool {
	return reason == fault.ReasonNamespaceTerminating || reason == credentials.ReasonRepositoryGone || reason == reasonPayloadMissing
}

// uncreated returns the runs to create, those first that nothing is known against.
func (w *work) uncreated() []*v1alpha1.Run {
	var fresh, waiting []*v1alpha1.Run
	for i := range w.event.Status.Runs {
		run := &w.event.Status.Runs[i]
		if !creatable(run) {
			continue
		}
		if w.wait(stepCreate+run.Name) == nil {
			fresh = append(fresh, run)
			continue
		}
		waiting = append(waiting, run)
	}
	return append(fresh, inTurn(true, waiting)...)
}

func creatable(run *v1alpha1.Run) bool {
	return !run.Unresolved && run.UID == "" && run.Refused == nil && run.Result == nil
}

// judge turns an answer that is final into the run's refusal or result; every other error stays a wait.
func (w *work) judge(step string, run *v1alpha1.Run, err error) error {
	f := fault.Of(err)
	if f == nil {
		return nil
	}
	if before := w.wait(step); f.Reason == fault.ReasonDenialEchoesOutage && before != nil &&
		before.Reason == f.Reason && w.r.clock.Since(before.Since.Time) > echoLimit {
		f = f.Believe()
	}
	if f.Class == fault.Invalid {
		run.Refused = &v1alpha1.Refusal{Reason: f.Reason, Message: f.Message}
		return nil
	}
	if f.Reason == fault.ReasonInstallationGone && w.hopeless(w.wait(step)) {
		f.Reason = reasonGivenUp
	}
	if noPlace(f.Reason) || f.Reason == reasonSuperseded || f.Reason == reasonGivenUp {
		run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled, Reason: f.Reason, Message: f.Message}
		return nil
	}
	return err
}

// createRun creates the git-auth secret, then the PipelineRun. Both names are known, so a create that landed although
// its answer was lost is found again.
func (r *Reconciler) createRun(ctx context.Context, w *work, run *v1alpha1.Run) error {
	if err := r.giveUp(ctx, w, run); err != nil {
		return err
	}
	values, err := w.values(ctx)
	if err != nil {
		return err
	}
	err = r.createWith(ctx, w, run, values)
	if f := fault.Of(err); f != nil && f.Reason == fault.ReasonNamespaceMissing {
		err = w.unlessGone(ctx, f)
	}
	return masked(err, values)
}

// unlessGone ends the wait for a namespace that took the Repository with it.
func (w *work) unlessGone(ctx context.Context, missing *fault.Error) error {
	if ref := w.event.Spec.Repository; w.session.RepositoryGone(ctx) {
		return fault.Operatorf(credentials.ReasonRepositoryGone, "Repository %s/%s is gone, and its namespace", ref.Namespace, ref.Name)
	}
	return missing // whatever else: it is asked again then
}

func (r *Reconciler) createWith(ctx context.Context, w *work, run *v1alpha1.Run, values map[string]string) error {
	manifest, err := w.manifest(ctx, run.Name)
	if err != nil {
		return err
	}
	if manifest, err = reveal(manifest, values); err != nil {
		return err
	}
	if err := w.fresh(ctx); err != nil {
		return err
	}
	if run.Secret != "" {
		if err := r.createSecret(ctx, w, run); err != nil {
			return err
		}
	}
	if err := w.fresh(ctx); err != nil { // the token may have taken long
		return err
	}
	created, err := r.tekton.PipelineRuns(run.Namespace).Create(ctx, manifest, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		created, err = r.adopt(ctx, manifest)
	} else if err != nil {
		err = fault.FromKube(fault.VerbCreate, err)
	}
	if err != nil {
		return err
	}
	run.UID = created.UID
	w.made(created)
	r.metrics.created(ctx)
	return nil
}

// adopt returns the PipelineRun of the planned name if it is ours: then an earlier create landed. A foreign one is left
// alone (C10).
func (r *Reconciler) adopt(ctx context.Context, manifest *pipelinev1.PipelineRun) (*pipelinev1.PipelineRun, error) {
	found, err := r.tekton.PipelineRuns(manifest.Namespace).Get(ctx, manifest.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading PipelineRun %s/%s: %w", manifest.Namespace, manifest.Name, err))
	}
	if found.Annotations[plumbline.RunKeyAnnotation] != manifest.Annotations[plumbline.RunKeyAnnotation] {
		return nil, fault.Operatorf("ForeignPipelineRun",
			"PipelineRun %s/%s exists and is not this event's (annotation %s differs): delete or rename it", manifest.Namespace, manifest.Name, plumbline.RunKeyAnnotation)
	}
	return found, nil
}

// createSecret makes the run's git-auth secret with a fresh token. One that exists under the run's own name is from an
// earlier attempt and gets the fresh token.
func (r *Reconciler) createSecret(ctx context.Context, w *work, run *v1alpha1.Run) error {
	fresh, err := r.grant(ctx, w)
	if err != nil {
		return err
	}
	secret := fresh.secret(w, run)
	_, err = r.kube.Secrets(run.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = r.patchSecret(ctx, secret)
	}
	if err != nil {
		return asOwn(fault.FromKube(fault.VerbCreate, fmt.Errorf("creating secret %s/%s: %w", run.Namespace, run.Secret, err)))
	}
	run.SecretRenewAt = w.renewAt(fresh.token)
	return nil
}

// asOwn keeps a refusal of an object that the author did not write from becoming the author's failure.
func asOwn(f *fault.Error) error {
	if f.Class == fault.Invalid {
		f.Class = fault.Operator
	}
	return f
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/blob"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/retry"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/statuslimit"
)

// maxDecisions is how many decisions a settled event keeps: they are the answer to "why did it not run".
const maxDecisions = 20

// conclude derives the conditions from the status: they repeat it for people and decide nothing.
func (w *work) conclude() {
	statuslimit.Fit(&w.event.Status)
	w.mark(v1alpha1.GitEventPlanned, w.decided(), stepPlan)
	w.mark(v1alpha1.GitEventCreated, w.decided() && w.allCreated(), w.createWait())
	w.mark(v1alpha1.GitEventReported, w.planned() && w.wait(stepReport) == nil && len(w.outstanding()) == 0, stepReport)
	if wait := w.wait(stepAnnotate); wait != nil {
		w.event.MarkNotAnnotated(wait.Reason, wait.Message)
	} else if w.planned() {
		w.event.MarkTrue(v1alpha1.GitEventAnnotated, "", "")
	}
}

// summarize derives from the status what lists of events show. It is part of each write, so it costs none. A settled event
// keeps what it ended with: little of what that follows from is left.
func (w *work) summarize() {
	if s := &w.event.Status; !w.event.Settled() {
		s.Outcome, s.Ref = status.Outcome(s), w.event.Spec.Ref()
	}
}

func (w *work) mark(condition apis.ConditionType, done bool, step string) {
	if done {
		w.event.MarkTrue(condition, "", "")
		return
	}
	if wait := w.wait(step); wait != nil {
		w.event.MarkWaiting(condition, wait.Reason, wait.Message)
		return
	}
	w.event.MarkWaiting(condition, "Pending", "waiting for the step before it")
}

func (w *work) allCreated() bool {
	for _, run := range w.event.Status.Runs {
		if run.UID == "" && run.Refused == nil && run.Result == nil {
			return false
		}
	}
	return true
}

func (w *work) createWait() string {
	for _, run := range w.event.Status.Runs {
		if step := stepCreate + run.Name; w.wait(step) != nil {
			return step
		}
	}
	return stepPlan
}

// finished tells whether nothing is left to do: every run is refused or over, every report accepted, every run patched.
func (w *work) finished() bool {
	if !w.decided() || len(w.event.Status.Waits) > 0 || len(w.outstanding()) > 0 {
		return false
	}
	return w.over() && len(w.unpatched()) == 0
}

// finish removes what only an open event needs and settles the event. Every delete may be repeated.
func (r *Reconciler) finish(ctx context.Context, w *work) error {
	return w.try(retry.Step{Name: stepSettle}, func() error { return r.tidy(ctx, w) })
}

func (r *Reconciler) tidy(ctx context.Context, w *work) error {
	if err := r.deleteSecret(ctx, w.event.Namespace, w.event.Status.Plan.Secret); err != nil {
		return err
	}
	over := w.turn(shortTurn)
	for i := range w.event.Status.Runs {
		run := &w.event.Status.Runs[i]
		if run.Secret == "" {
			continue
		}
		if err := over(); err != nil {
			return errors.Join(w.record(ctx), err)
		}
		if err := r.deleteSecret(ctx, run.Namespace, run.Secret); err != nil {
			return err
		}
		run.Secret = "" // recorded when not all of them are deleted in one turn
	}
	for _, ref := range append([]v1alpha1.BlobReference{w.event.Spec.Payload}, w.event.Status.Plan.Blobs...) {
		if err := blob.Delete(ctx, r.payloads, ref); err != nil {
			return err
		}
	}
	w.shrink()
	return w.record(ctx)
}

// deleteSecret does nothing for an empty name.
func (r *Reconciler) deleteSecret(ctx context.Context, namespace, name string) error {
	if name == "" {
		return nil
	}
	err := r.kube.Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fault.FromKube(fault.VerbDelete, fmt.Errorf("deleting secret %s/%s: %w", namespace, name, err))
	}
	return nil
}

// shrink leaves the stub that redeliveries are compared with and that tells people what became of the event.
func (w *work) shrink() {
	w.summarize()
	now := metav1.NewTime(w.r.clock.Now())
	s := &w.event.Status
	s.Phase, s.SettledAt, s.Checks, s.Waits = v1alpha1.PhaseSettled, &now, nil, nil
	s.LateSecrets = w.r.leads.inherited(w.event)
	s.Plan.Blobs, s.Plan.Secret = nil, ""
	if len(s.Plan.Decisions) > maxDecisions {
		s.Plan.Decisions = s.Plan.Decisions[:maxDecisions]
	}
	for i := range s.Runs {
		s.Runs[i].Patched, s.Runs[i].Secret, s.Runs[i].SecretRenewAt = "", "", nil
		if s.Runs[i].Result != nil {
			s.Runs[i].Result.Text, s.Runs[i].Result.Brief = "", ""
		}
	}
}

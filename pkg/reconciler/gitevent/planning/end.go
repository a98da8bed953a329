// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// Closings finds out what stops the runs of events (cancel.Step).
type Closings interface {
	// Since returns why an event must not start anything: its pull request was closed after it
	// happened. It returns nil, nil if the event may go on.
	Since(ctx context.Context, event *v1alpha1.GitEvent) (*v1alpha1.Cancellation, error)
	// Finds reports what a command that cancels would stop now.
	Finds(ctx context.Context, event string, spec *v1alpha1.GitEventSpec, c *v1alpha1.Cancellation) (
		something, running bool, err error)
}

// GiveUp ends the planning of an event for which waiting is pointless. An event that the Git
// service does not confirm is ignored: a sender who forged it must not be able to make it show. Its
// redelivery is processed again, unless a run was created.
func (s *Step) GiveUp(ctx context.Context, a *attempt.Attempt, wait *v1alpha1.Wait) error {
	reason, message := wait.Reason, wait.Message
	if reason == fault.ReasonNotConfirmed { // nothing proves that it ever happened
		return abandon(ctx, a, v1alpha1.DispositionIgnored, reason, message)
	}
	a.Waits.WarningEvent(attempt.ReasonGivenUp,
		fmt.Sprintf("given up after waiting without effect (%s): %s", reason, message))
	if a.Planned() {
		reason = attempt.ReasonGivenUp
	}
	return abandon(ctx, a, v1alpha1.DispositionRefused, reason, message)
}

// Cancel ends the planning of an event that another one has cancelled as a whole.
func (s *Step) Cancel(ctx context.Context, a *attempt.Attempt, why *v1alpha1.Cancellation) error {
	return abandon(ctx, a, v1alpha1.DispositionIgnored, attempt.ReasonCancelled, "cancelled: "+why.Why)
}

// closed ends the planning of an event whose pull request was closed after it happened, before
// anything is planned.
func (s *Step) closed(ctx context.Context, a *attempt.Attempt) (bool, error) {
	if !fresh(a) {
		return false, nil
	}
	why, err := s.Cancellations.Since(ctx, a.Event)
	if why == nil || err != nil {
		return false, err
	}
	return true, s.Cancel(ctx, a, why)
}

func (s *Step) park(ctx context.Context, a *attempt.Attempt) error {
	return s.parkFor(ctx, a, fmt.Sprintf("planning this event panicked %d times; the controller's log has the stacks. "+
		"Report it, and deliver the event again once the cause is gone", attempt.MaxPanics))
}

func (s *Step) parkFor(ctx context.Context, a *attempt.Attempt, message string) error {
	a.Waits.WarningEvent(ReasonParked, message)
	err := abandon(ctx, a, v1alpha1.DispositionRefused, ReasonParked, message)
	if err == nil {
		s.Metrics.Parked(ctx)
	}
	return err
}

// unlessMissing ends the planning of an event whose payload is gone. It returns other errors
// unchanged.
func unlessMissing(ctx context.Context, a *attempt.Attempt, err error) error {
	f := fault.Of(err)
	if f == nil || f.Reason != plans.ReasonPayloadMissing {
		return err
	}
	a.Waits.WarningEvent(f.Reason, f.Message)
	return abandon(ctx, a, v1alpha1.DispositionRefused, f.Reason, f.Message)
}

// abandon ends the planning of an event that must not be planned further. Runs that exist go on.
func abandon(ctx context.Context, a *attempt.Attempt, disposition v1alpha1.Disposition, reason, message string) error {
	if !a.Planned() {
		return writePlan(ctx, a, disposition,
			&v1alpha1.Plan{HeadSHA: a.Event.Spec.SHA, Ref: refOf(&a.Event.Spec), Reason: reason, Message: message})
	}
	next := a.Event.Status.Plan.DeepCopy()
	for i := range next.Decisions {
		if d := &next.Decisions[i]; d.Open {
			d.Open, d.Reason, d.Selected = false, message, ""
		}
	}
	for i := range a.Event.Status.Runs {
		if run := &a.Event.Status.Runs[i]; run.Unresolved {
			a.Waits.Clear(v1alpha1.StepCreate + run.Name)
			run.Unresolved = false
			run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled, Reason: reason, Message: message}
		}
	}
	return writePlan(ctx, a, a.Event.Status.Disposition, next)
}

// writePlan is the only write of a plan. If it fails, nothing was planned.
func writePlan(ctx context.Context, a *attempt.Attempt, disposition v1alpha1.Disposition, next *v1alpha1.Plan) error {
	if next.Decided() {
		a.Waits.Clear(v1alpha1.StepPlan)
		a.Waits.Clear((&refusals{a: a}).step())
	}
	if next.At == nil {
		now := metav1.NewTime(a.Clock.Now().Truncate(time.Second))
		next.At = &now
	}
	a.Event.Status.Plan, a.Event.Status.Disposition, a.Event.Status.Begun = next, disposition, 0
	a.UpdateConditions()
	err := a.Record.WritePlan(ctx)
	if err != nil {
		a.Restore()
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// UpdateConditions derives the conditions from the status. They repeat it for people and decide
// nothing.
func (a *Attempt) UpdateConditions() {
	v1alpha1.Fit(&a.Event.Status)
	a.mark(v1alpha1.GitEventPlanned, a.Decided(), v1alpha1.StepPlan)
	a.mark(v1alpha1.GitEventCreated, a.Decided() && a.allCreated(), a.createWait())
	a.mark(v1alpha1.GitEventReported, a.Planned() && a.Waits.Of(v1alpha1.StepReport) == nil && len(a.Outstanding()) == 0,
		v1alpha1.StepReport)
	if wait := a.Waits.Of(v1alpha1.StepAnnotate); wait != nil {
		a.Event.MarkNotAnnotated(wait.Reason, wait.Message)
	} else if a.Planned() {
		a.Event.MarkTrue(v1alpha1.GitEventAnnotated, "", "")
	}
}

// Summarize derives from the status what lists of events show. It is part of each write, so it
// costs none. A settled event keeps its last summary: most of what that was derived from is
// removed.
func Summarize(event *v1alpha1.GitEvent) {
	if s := &event.Status; !event.Settled() {
		s.Outcome, s.Ref = status.Summary(s), refOf(event)
	}
}

// refOf returns what people call the event's subject. The recorded spec of a re-run does not have
// it; the plan finds it out.
func refOf(event *v1alpha1.GitEvent) string {
	switch s := &event.Status; {
	case event.Spec.Rerun == nil:
		return event.Spec.Ref()
	case s.Plan == nil:
		return ""
	case s.Ref != "":
		return s.Ref
	}
	return event.Spec.Ref()
}

func (a *Attempt) mark(condition apis.ConditionType, done bool, step string) {
	if done {
		a.Event.MarkTrue(condition, "", "")
		return
	}
	if wait := a.Waits.Of(step); wait != nil {
		a.Event.MarkWaiting(condition, wait.Reason, wait.Message)
		return
	}
	a.Event.MarkWaiting(condition, reasonPending, "waiting for the step before it")
}

func (a *Attempt) allCreated() bool {
	for _, run := range a.Event.Status.Runs {
		if !run.Started() && run.Refused == nil && run.Result == nil {
			return false
		}
	}
	return true
}

func (a *Attempt) createWait() string {
	for _, run := range a.Event.Status.Runs {
		if step := v1alpha1.StepCreate + run.Name; a.Waits.Of(step) != nil {
			return step
		}
	}
	return v1alpha1.StepPlan
}

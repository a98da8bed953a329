// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"time"

	"knative.dev/pkg/controller"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
)

// The steps, as the timers of a process name them beside those of status.waits.
const (
	StepRead    = "read"
	StepObserve = "observe"
	StepSettle  = "settle"
	stepRecord  = "record"
)

// Create is what is tried to create a run. That it was cancelled is news: it does not wait until
// its create would be tried again.
func CreateStep(event *v1alpha1.GitEvent, run *v1alpha1.Run) backoff.Step {
	step := backoff.Step{Name: v1alpha1.StepCreate, Of: run.Name}
	if event.Cancelled(run.Pipeline) != nil {
		step.Version = "cancelled"
	}
	return step
}

// Try does what has not failed a moment ago. What is not tried has a timer, so that it neither
// counts as done nor wakes the event early.
func (w *Waits) WithBackoff(step backoff.Step, do func() error) error {
	if err := w.BackingOff(step); err != nil {
		return err
	}
	err := do()
	w.state.Timers.Note(w.event.Name, step, err, w.state.Clock.Now())
	return err
}

// Failing returns for how long a step has failed in this process.
func (w *Waits) FailingFor(step backoff.Step) time.Duration {
	return w.state.Timers.Failing(w.event.Name, step, w.state.Clock.Now())
}

// Rest keeps a step that needs an operator from being tried again before its time, however often
// the event is woken.
func (w *Waits) BackOff(step backoff.Step) {
	w.state.Timers.Rest(w.event.Name, step, w.state.operatorRetry(), w.state.Clock.Now())
}

// FailedJustNow returns the timer of a step that is not to be tried now.
func (w *Waits) BackingOff(step backoff.Step) error {
	left := w.state.Timers.Left(w.event.Name, step, w.state.Clock.Now())
	if left == 0 {
		return nil
	}
	return &notDue{fault.Throttledf(fault.ReasonBusy, left, "%s has just failed", step.Name)}
}

// notDue marks a step that was not tried, because it is not its time yet: its recorded wait is left
// as it is.
type notDue struct{ fault *fault.Error }

func (n *notDue) Error() string { return n.fault.Error() }
func (n *notDue) Unwrap() error { return n.fault }

// Skipped reports whether an error stands for a step that was not tried, because it is not its
// time.
func Skipped(err error) bool {
	_, yes := err.(*notDue) //nolint:errorlint // it is never wrapped
	return yes
}

// ComeBack returns when the event is wanted again at the latest, false if what Reconcile returns
// says it all: the workqueue knows one time for it, and each step may have its own.
func (d *State) RequeueAfter(event string, err error) (time.Duration, bool) {
	if err == nil || controller.IsSkipKey(err) {
		d.Timers.Forget(event)
		return 0, false
	}
	now := d.Clock.Now()
	after, known := backoff.KnownWait(err)
	if next, failing := d.Timers.Next(event, now); failing && (!known || next < after) {
		return next, true
	}
	return after, known
}

// First has the words of one error alone: the texts of several would change from attempt to
// attempt. What was tried says more than what was not, and all that was has its time.
func Merge(faults []error) error {
	var tried []error
	var untried error
	for _, err := range faults {
		if err != nil && !Skipped(err) {
			tried = append(tried, err)
		}
		if untried == nil {
			untried = err
		}
	}
	if len(tried) == 0 {
		return untried
	}
	return fault.Among(tried[0], tried[1:]...)
}

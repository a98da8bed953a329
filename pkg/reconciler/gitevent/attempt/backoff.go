// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"time"

	"knative.dev/pkg/controller"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
)

// Steps that have timers in a process and no entry in status.waits.
const (
	StepRead    = "read"
	StepObserve = "observe"
	StepSettle  = "settle"
	stepRecord  = "record"
)

// CreateStep names the creation of a run. A cancelled run is another version of that step: it does
// not wait until its creation would be retried.
func CreateStep(event *v1alpha1.GitEvent, run *v1alpha1.Run) backoff.Step {
	step := backoff.Step{Name: v1alpha1.StepCreate, Of: run.Name}
	if event.Cancelled(run.Pipeline) != nil {
		step.Version = "cancelled"
	}
	return step
}

// WithBackoff calls do unless the step has just failed. Otherwise it returns the step's timer as an
// error, so that the step does not count as done and does not wake the event early.
func (w *Waits) WithBackoff(step backoff.Step, do func() error) error {
	if err := w.BackingOff(step); err != nil {
		return err
	}
	err := do()
	w.state.Timers.Note(w.event.Name, step, err, w.state.Clock.Now())
	return err
}

// FailingFor returns for how long a step has failed in this process.
func (w *Waits) FailingFor(step backoff.Step) time.Duration {
	return w.state.Timers.Failing(w.event.Name, step, w.state.Clock.Now())
}

// BackOff keeps a step that needs an operator from being retried before its time, however often the
// event is woken.
func (w *Waits) BackOff(step backoff.Step) {
	w.state.Timers.Postpone(w.event.Name, step, w.state.operatorRetry(), w.state.Clock.Now())
}

// BackingOff returns the timer of a step that must not be tried now, nil if it may be.
func (w *Waits) BackingOff(step backoff.Step) error {
	left := w.state.Timers.Left(w.event.Name, step, w.state.Clock.Now())
	if left == 0 {
		return nil
	}
	return &notDue{fault.Throttledf(fault.ReasonBusy, left, "%s has just failed", step.Name)}
}

// notDue is the error of a step that was not tried because it is not due. The recorded wait of the
// step stays as it is.
type notDue struct{ fault *fault.Error }

func (n *notDue) Error() string { return n.fault.Error() }
func (n *notDue) Unwrap() error { return n.fault }

// Skipped reports whether an error is that of a step that was not tried because it is not due.
func Skipped(err error) bool {
	_, yes := err.(*notDue) //nolint:errorlint // it is never wrapped
	return yes
}

// RequeueAfter returns when the event must be reconciled at the latest, in addition to what
// Reconcile returns; false if it need not. The workqueue has one time for an event, and each step
// may have its own.
func (s *State) RequeueAfter(event string, err error) (time.Duration, bool) {
	if err == nil || controller.IsSkipKey(err) {
		s.Timers.Forget(event)
		return 0, false
	}
	now := s.Clock.Now()
	after, known := backoff.KnownWait(err)
	if next, failing := s.Timers.Next(event, now); failing && (!known || next < after) {
		return next, true
	}
	return after, known
}

// Merge returns one error for several. It has the message of the first step that was tried: a
// message of several would change from attempt to attempt. It keeps the retry times of all steps
// that were tried. If none was tried it returns the first error.
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

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"time"

	"knative.dev/pkg/controller"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/retry"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// The steps, as the timers of a process name them beside those of status.waits.
const (
	stepRead    = "read"
	stepObserve = "observe"
	stepRecord  = "record"
	stepSettle  = "settle"
)

// try does what has not failed a moment ago. What is not tried has a timer, so that it neither counts as done nor wakes
// the event early.
func (w *work) try(step retry.Step, do func() error) error {
	if err := w.failedJustNow(step); err != nil {
		return err
	}
	err := do()
	w.r.retries.Note(w.event.Name, step, err, w.r.clock.Now())
	return err
}

// failedJustNow returns the timer of a step that is not to be tried now.
func (w *work) failedJustNow(step retry.Step) error {
	left := w.r.retries.Left(w.event.Name, step, w.r.clock.Now())
	if left == 0 {
		return nil
	}
	return &notDue{fault.Throttledf(fault.ReasonBusy, left, "%s has just failed", step.Name)}
}

// notDue marks a step that was not tried, because it is not its time yet: its recorded wait is left as it is.
type notDue struct{ fault *fault.Error }

func (n *notDue) Error() string { return n.fault.Error() }
func (n *notDue) Unwrap() error { return n.fault }

func skipped(err error) bool {
	_, yes := err.(*notDue) //nolint:errorlint // it is never wrapped
	return yes
}

// comeBack returns when the event is wanted again at the latest, false if what Reconcile returns says it all: the
// workqueue knows one time for it, and each step may have its own.
func (r *Reconciler) comeBack(event string, err error) (time.Duration, bool) {
	if err == nil || controller.IsSkipKey(err) {
		r.retries.Forget(event)
		return 0, false
	}
	now := r.clock.Now()
	after, known := fault.KnownWait(err)
	if next, failing := r.retries.Next(event, now); failing && (!known || next < after) {
		return next, true
	}
	return after, known
}

// first joins nothing: the texts of several errors would change from attempt to attempt. What was tried says more than
// what was not.
func first(faults []error) error {
	var untried error
	for _, err := range faults {
		if err != nil && !skipped(err) {
			return err
		}
		if untried == nil {
			untried = err
		}
	}
	return untried
}

// reported is the step of sending one check. Another content of it is another version.
func reported(check *status.Check) retry.Step {
	return retry.Step{Name: stepReport, Of: check.Key, Version: status.Digest(*check)}
}

// recording is the step of writing the status. That a run has ended is news.
func (w *work) recording() retry.Step {
	ended := 0
	for i := range w.event.Status.Runs {
		if w.event.Status.Runs[i].Result != nil {
			ended++
		}
	}
	return retry.Step{Name: stepRecord, Version: fmt.Sprint(w.planned(), ended)}
}

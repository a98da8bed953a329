// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// Waits are status.waits: why steps of the event wait, and until when they are not tried. They also
// hold the timers of steps that have just failed, which only this process knows, and the Kubernetes
// Events that are sent after the status was written.
type Waits struct {
	state   *State
	event   *v1alpha1.GitEvent
	session *credentials.Session
	config  *config.Config
	log     *zap.SugaredLogger
	started time.Time
	events  []kubeEvent // sent once the change that they report is written
	tried   bool        // a step was tried that needs an operator
	skipped bool        // a step that needs an operator was not due
}

// kubeEvent is a Kubernetes Event: something changed that the tenant should know.
type kubeEvent struct {
	wait    v1alpha1.Wait
	message string
	// normal is true if the wait needs no action by a user.
	normal bool
	// fact is true if nothing waits because of it.
	fact bool
}

// Run runs a step if it is due, and records what it waits for.
func (w *Waits) Run(step string, do func() error) error { return w.Update(step, w.IfDue(step, do)) }

// WarningEvent adds a Kubernetes Event about something that is not the reason of a wait.
func (w *Waits) WarningEvent(reason, message string) {
	about := v1alpha1.Wait{Step: v1alpha1.StepReconcile, Class: fault.Operator.String(), Reason: reason}
	w.events = append(w.events, kubeEvent{wait: about, message: fmt.Sprintf("%s: %s", w.event.Name, message)})
}

// NormalEvent adds a Kubernetes Event, which is no warning, about something that people have
// decided.
func (w *Waits) NormalEvent(reason, message string) {
	about := v1alpha1.Wait{Reason: reason}
	message = fmt.Sprintf("%s: %s", w.event.Name, message)
	w.events = append(w.events, kubeEvent{wait: about, message: message, normal: true})
}

// IfDue runs a step unless a recorded wait says that it is not due; the wait then stays the reason.
// A step that waits for an operator is tried early if something has changed that it may wait for.
func (w *Waits) IfDue(step string, do func() error) error {
	wait := w.Of(step)
	if wait == nil || wait.NotBefore == nil {
		return do()
	}
	left := w.untilDue(wait)
	if left <= 0 || ofOneCheck(step, wait.Reason) { // the check backs off, not the step
		return do()
	}
	w.skipped = w.skipped || wait.Class == fault.Operator.String()
	return &notDue{fault.Throttledf(wait.Reason, left, "%s", wait.Message)}
}

// ofOneCheck reports whether a wait is about one of the reported checks, not about the whole step.
func ofOneCheck(step, reason string) bool {
	return step == v1alpha1.StepReport && reason == fault.ReasonGitRejected
}

// untilDue returns how long a wait with a time lasts, 0 if its step may be tried now.
func (w *Waits) untilDue(wait *v1alpha1.Wait) time.Duration {
	if wait.Class == fault.Operator.String() && w.session.Fixed(wait.Reason) {
		return 0
	}
	return max(0, wait.NotBefore.Sub(w.state.Clock.Now()))
}

// Of returns what a step waits for, nil if it does not wait.
func (w *Waits) Of(step string) *v1alpha1.Wait {
	for i := range w.event.Status.Waits {
		if w.event.Status.Waits[i].Step == step {
			return &w.event.Status.Waits[i]
		}
	}
	return nil
}

// Update is the only way from an error to the status. It records why a step waits and until when,
// adds one Kubernetes Event per change of reason, and returns the error for the queue. Without an
// error it clears the wait.
func (w *Waits) Update(step string, err error) error {
	if Skipped(err) {
		return err
	}
	err = w.unhandled(step, err)
	f := fault.Of(err)
	if f == nil {
		w.Clear(step)
		return nil
	}
	// After a conflict the next reconcile reads the event again and knows better what to record.
	// That the event waits for its turn (ReasonBusy) is not worth recording either.
	if f.Class == fault.Conflict || f.Reason == fault.ReasonBusy {
		return err
	}
	if f.Class == fault.Operator {
		w.needsOperator(err, f)
	}
	now := metav1.NewTime(w.state.Clock.Now().Truncate(time.Second))
	next := v1alpha1.Wait{
		Step:      step,
		Class:     f.Class.String(),
		Reason:    f.Reason,
		Message:   f.Advice(),
		Since:     now,
		NotBefore: w.notBefore(f, now),
	}
	before := w.Of(step)
	w.addEvent(before, next)
	if before == nil {
		w.event.Status.Waits = append(w.event.Status.Waits, next)
		return err
	}
	if before.Reason == f.Reason {
		next.Since = before.Since
		if w.rarelyWritten(f.Reason, before) {
			return err
		}
		if f.Class == fault.Transient || ofOneCheck(step, f.Reason) { // each attempt has another message
			next.Message = before.Message // keep the first: a new message would rewrite the status at each attempt
		}
	}
	if continues(before, &next) {
		next.Since = before.Since
	}
	*before = next
	return err
}

// continues reports whether a wait with another reason is the same wait. A Git service may refuse
// one request with an answer now and with none later; and patches and annotations are given up
// after a time, whatever refuses them.
func continues(before, next *v1alpha1.Wait) bool {
	refuses := func(w *v1alpha1.Wait) bool { return w.Class == fault.Transient.String() && FromGitService(w.Reason) }
	return next.Step == v1alpha1.StepAnnotate || next.Step == v1alpha1.StepSources || refuses(before) && refuses(next)
}

// rarelyWritten reports whether a recorded wait stays as it is, because it is written again only as
// often as one for an operator. Thousands of events may wait for a budget or a quota and check it
// each minute. Each write of a status stores a whole event with its payload: all of these writes
// would fill etcd.
func (w *Waits) rarelyWritten(reason string, before *v1alpha1.Wait) bool {
	return (plans.OverBudget(reason) || reason == fault.ReasonQuota) && before.NotBefore != nil &&
		w.state.Clock.Since(before.NotBefore.Time) < w.state.operatorRetry()
}

// addEvent adds one Kubernetes Event for each change of reason. Tenants are not told of a panic,
// which is our defect, nor of a wait for a slot, which is no problem.
func (w *Waits) addEvent(before *v1alpha1.Wait, next v1alpha1.Wait) {
	if next.Reason == ReasonPanic || next.Reason == fault.ReasonConcurrencyLimit ||
		before != nil && before.Reason == next.Reason {
		return
	}
	message := fmt.Sprintf("%s of %s: %s", next.Step, w.event.Name, next.Message)
	w.events = append(w.events, kubeEvent{wait: next, message: message})
}

// unhandled turns a fault that the step should have answered or ended into a wait that shows.
// Otherwise the event would be silent for ever.
func (w *Waits) unhandled(step string, err error) error {
	f := fault.Of(err)
	if f != nil && f.Reason == fault.ReasonCredentialsRefused && w.session.Outdated() {
		return &fault.Error{
			Class:   fault.Conflict,
			Reason:  f.Reason,
			Message: "the App's Secret was read a moment ago, and is read again",
		}
	}
	if f == nil || f.Class != fault.Invalid && f.Class != fault.Ignored {
		return err
	}
	w.log.Errorw("A step left a refusal without an answer: a defect of Plumbline",
		"step", step, "reason", f.Reason, "error", f.Message)
	w.state.Metrics.Unhandled()
	return fault.Operatorf(fault.ReasonUnhandled,
		"%s (%s), which Plumbline does not handle here: this is a defect of it, please report it", f.Message, f.Reason)
}

// needsOperator notes that an operator has to act. A message about credentials is that of the
// credentials alone. With a description of the request in front, it would be different for each
// event.
func (w *Waits) needsOperator(err error, f *fault.Error) {
	w.tried = true
	var own *fault.Error
	if credentials.NamesSecret(f.Reason) && errors.As(err, &own) {
		f.Message = own.Message
	}
	if f.Reason == fault.ReasonCredentialsRefused {
		w.session.Refused(f)
	}
}

func (w *Waits) notBefore(f *fault.Error, now metav1.Time) *metav1.Time {
	if f.Reason == fault.ReasonConcurrencyLimit {
		return nil // it is checked whenever the event is woken; a time would be rewritten at each check
	}
	wait := f.RetryAfter
	if f.Class == fault.Operator && wait == 0 {
		wait = w.state.operatorRetry()
	}
	if wait == 0 {
		return nil
	}
	at := metav1.NewTime(now.Add(wait))
	return &at
}

// Clear removes the wait of a step.
func (w *Waits) Clear(step string) {
	for i := range w.event.Status.Waits {
		if w.event.Status.Waits[i].Step == step {
			w.event.Status.Waits = append(w.event.Status.Waits[:i], w.event.Status.Waits[i+1:]...)
			return
		}
	}
}

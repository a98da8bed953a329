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

// Waits are status.waits: why a step of the event is not done, and until when it is not tried.
// Beside them are the timers of what has just failed, which only this process knows, and the news
// that a written status brings.
type Waits struct {
	desk    *Desk
	event   *v1alpha1.GitEvent
	session *credentials.Session
	config  *config.Config
	log     *zap.SugaredLogger
	began   time.Time
	news    []news // told once the change that it is about is recorded
	tried   bool   // a step needs an operator's help; skipped: one that does was not tried, it is not its time
	skipped bool
}

// news is a Kubernetes Event: something changed that the tenant should know.
type news struct {
	wait    v1alpha1.Wait
	message string
	// normal is true for what nobody has to look after.
	normal bool
}

// Step does a step unless it is not its time, and records what it waits for.
func (w *Waits) Step(step string, do func() error) error { return w.Settle(step, w.Due(step, do)) }

// Tell makes one Kubernetes Event of what is not told as the reason of a wait.
func (w *Waits) Tell(reason, message string) {
	about := v1alpha1.Wait{Step: v1alpha1.StepReconcile, Class: fault.Operator.String(), Reason: reason}
	w.news = append(w.news, news{wait: about, message: fmt.Sprintf("%s: %s", w.event.Name, message)})
}

// Announce makes one Kubernetes Event, which is no warning, of something that people have decided.
func (w *Waits) Announce(reason, message string) {
	w.news = append(
		w.news,
		news{wait: v1alpha1.Wait{Reason: reason}, message: fmt.Sprintf("%s: %s", w.event.Name, message), normal: true},
	)
}

// Due runs a step unless a recorded wait says that it is not its time yet; the wait then stays the
// reason. What waits for an operator is tried before its time when something has changed that it
// may wait for.
func (w *Waits) Due(step string, do func() error) error {
	wait := w.Of(step)
	if wait == nil || wait.NotBefore == nil {
		return do()
	}
	left := w.untilDue(wait)
	if left <= 0 || ofOneCheck(step, wait.Reason) { // which rests
		return do()
	}
	w.skipped = w.skipped || wait.Class == fault.Operator.String()
	return &notDue{fault.Throttledf(wait.Reason, left, "%s", wait.Message)}
}

// ofOneCheck reports whether a wait is about one of the checks that a step reports, and not about
// the step.
func ofOneCheck(step, reason string) bool {
	return step == v1alpha1.StepReport && reason == fault.ReasonGitRejected
}

// untilDue returns how long a wait with a time lasts, 0 if what it is for may be tried now.
func (w *Waits) untilDue(wait *v1alpha1.Wait) time.Duration {
	if wait.Class == fault.Operator.String() && w.session.Fixed(wait.Reason) {
		return 0
	}
	return max(0, wait.NotBefore.Sub(w.desk.Clock.Now()))
}

// Of returns what a step waits for, nil when it does not wait.
func (w *Waits) Of(step string) *v1alpha1.Wait {
	for i := range w.event.Status.Waits {
		if w.event.Status.Waits[i].Step == step {
			return &w.event.Status.Waits[i]
		}
	}
	return nil
}

// Settle is the one exit from an error to the status: it records why a step waits and until when,
// tells the Repository once per change of reason, and returns the error for the queue.
func (w *Waits) Settle(step string, err error) error {
	if Skipped(err) {
		return err
	}
	err = w.handled(step, err)
	f := fault.Of(err)
	if f == nil {
		w.Clear(step)
		return nil
	}
	// After a conflict the next reconcile reads again and knows better what to record; whose turn
	// it is tells nobody anything.
	if f.Class == fault.Conflict || f.Reason == fault.ReasonBusy {
		return err
	}
	if f.Class == fault.Operator {
		w.needsHelp(err, f)
	}
	now := metav1.NewTime(w.desk.Clock.Now().Truncate(time.Second))
	next := v1alpha1.Wait{
		Step:      step,
		Class:     f.Class.String(),
		Reason:    f.Reason,
		Message:   f.Advice(),
		Since:     now,
		NotBefore: w.notBefore(f, now),
	}
	before := w.Of(step)
	w.tell(before, next)
	if before == nil {
		w.event.Status.Waits = append(w.event.Status.Waits, next)
		return err
	}
	if before.Reason == f.Reason {
		next.Since = before.Since
		if w.seldom(f.Reason, before) {
			return err
		}
		if f.Class == fault.Transient || ofOneCheck(step, f.Reason) { // each attempt names another one
			next.Message = before.Message // the first words stand: a text that changes would rewrite the status at each attempt
		}
	}
	if goesOn(before, &next) {
		next.Since = before.Since
	}
	*before = next
	return err
}

// goesOn reports whether a wait for another reason is the same wait. A Git service refuses one
// thing now with an answer, now with none; and patches are given up after a time, whatever refuses
// them.
func goesOn(before, next *v1alpha1.Wait) bool {
	refuses := func(w *v1alpha1.Wait) bool { return w.Class == fault.Transient.String() && OfGitService(w.Reason) }
	return next.Step == v1alpha1.StepAnnotate || refuses(before) && refuses(next)
}

// seldom reports whether a wait that stands is left as it is recorded, because it is written again
// only as often as one for an operator. Thousands may wait for room or a quota and look each
// minute; each write of a status stores a whole event with its payload, and all of them would fill
// etcd.
func (w *Waits) seldom(reason string, before *v1alpha1.Wait) bool {
	return (plans.OverBudget(reason) || reason == fault.ReasonQuota) && before.NotBefore != nil &&
		w.desk.Clock.Since(before.NotBefore.Time) < w.desk.operatorRetry()
}

// tell makes one Kubernetes Event for each change of reason. No tenant is told of a panic, which is
// ours, nor of a wait for a slot, which is nobody's trouble.
func (w *Waits) tell(before *v1alpha1.Wait, next v1alpha1.Wait) {
	if next.Reason == ReasonPanic || next.Reason == fault.ReasonConcurrencyLimit ||
		before != nil && before.Reason == next.Reason {
		return
	}
	w.news = append(w.news, news{wait: next, message: fmt.Sprintf("%s of %s: %s", next.Step, w.event.Name, next.Message)})
}

// handled turns a fault that only an answer to the author or an end of the event could settle into
// a wait that shows: the step gave neither, and the event would be silent for ever.
func (w *Waits) handled(step string, err error) error {
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
	w.log.Errorw(
		"A step left a refusal without an answer: a defect of Plumbline",
		"step",
		step,
		"reason",
		f.Reason,
		"error",
		f.Message,
	)
	w.desk.Metrics.Unhandled()
	return fault.Operatorf(
		fault.ReasonUnhandled,
		"%s (%s), which Plumbline does not handle here: this is a defect of it, please report it",
		f.Message,
		f.Reason,
	)
}

// needsHelp notes that an operator has to act. What is said about credentials is said in the words
// of whoever needs them: with what was being done in front of them it would be another text for
// each event.
func (w *Waits) needsHelp(err error, f *fault.Error) {
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
		return nil // it is looked at whenever something wakes the event; a time would be written anew at each look
	}
	wait := f.RetryAfter
	if f.Class == fault.Operator && wait == 0 {
		wait = w.desk.operatorRetry()
	}
	if wait == 0 {
		return nil
	}
	at := metav1.NewTime(now.Add(wait))
	return &at
}

// Clear is called for a step that waits for nothing any more.
func (w *Waits) Clear(step string) {
	for i := range w.event.Status.Waits {
		if w.event.Status.Waits[i].Step == step {
			w.event.Status.Waits = append(w.event.Status.Waits[:i], w.event.Status.Waits[i+1:]...)
			return
		}
	}
}

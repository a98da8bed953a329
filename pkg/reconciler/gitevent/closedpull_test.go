// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/cancel"
)

// pullRequest makes the env's event one of a pull request, which happened after this time.
func (w *env) pullRequest(action string, after time.Duration) {
	w.t.Helper()
	w.edit(func(e *v1alpha1.GitEvent) { asPull(e, action, w.clock.Now().Add(after), w.clock.Now()) })
}

func asPull(e *v1alpha1.GitEvent, action string, happened, received time.Time) {
	e.Spec.Trigger, e.Spec.EventType, e.Spec.Action, e.Spec.Actor = v1alpha1.TriggerPullRequest, "pull_request", action,
		"rita"
	e.Spec.PullRequest = &v1alpha1.PullRequest{Number: 3, Author: "dev", HeadProjectID: 5}
	at := metav1.NewTime(happened)
	e.Spec.HappenedAt, e.Spec.ReceivedAt = &at, metav1.NewTime(received)
	e.Labels = map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
}

// addEvent adds another event of the pull request.
func (w *env) addEvent(name, action string, after time.Duration, change ...func(*v1alpha1.GitEvent)) {
	w.t.Helper()
	e := event()
	e.Name, e.UID, e.Spec.Payload.Name = name, "uid-of-"+"other", name
	asPull(e, action, w.clock.Now().Add(after), w.clock.Now())
	for _, c := range change {
		c(e)
	}
	w.must(w.own.Tracker().Add(e))
}

// A close cancels earlier events of the pull request and starts nothing. It reads no .tekton,
// leaves no check, and looks once more for events that are recorded late before it settles. Refused
// patches are retried; nothing else is changed.
func TestClosedPullRequestCancelsEarlierEvents(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.pullRequest("closed", 10*time.Second)
	w.addEvent("before", "synchronize", 5*time.Second)
	w.addEvent("same-second", "labeled", 10*time.Second)
	w.addEvent("reopened", "reopened", 11*time.Second)
	w.addEvent("closed-before", "closed", 2*time.Second)
	w.addEvent("closed-too", "closed", 10*time.Second)
	w.addEvent("settled", "opened", 0, func(e *v1alpha1.GitEvent) { e.Status.Phase = v1alpha1.PhaseSettled })
	w.addEvent("another-pull", "opened", 0, func(e *v1alpha1.GitEvent) {
		e.Spec.PullRequest.Number = 4
		e.Labels[plumbline.SubjectLabel] = e.Spec.Subject()
	})
	w.addEvent("push-of-it", "opened", 0, func(e *v1alpha1.GitEvent) {
		e.Spec.PullRequest = nil
		e.Labels[plumbline.SubjectLabel] = e.Spec.Subject()
	})
	w.hook = always("patch gitevents", errRefused)
	for range 2 {
		if _, err := w.reconcile(); err == nil {
			t.Error("what was refused is not tried again")
		}
		w.advance(time.Second)
	}
	if e := w.event(); e.Status.Disposition != v1alpha1.DispositionCancels || len(e.Status.Waits) != 1 ||
		e.Status.Waits[0].Step != v1alpha1.StepNotify {
		t.Errorf("disposition %s, waits %+v", e.Status.Disposition, e.Status.Waits)
	}
	w.hook = nil
	_, _ = w.reconcile()
	w.addEvent("late", "synchronize", 5*time.Second, func(e *v1alpha1.GitEvent) { // recorded after the first look
		at := metav1.NewTime(w.event().Status.Plan.Cancels.At.Add(-time.Second))
		e.Spec.HappenedAt = &at
	})
	_, err := w.reconcile()
	if got := w.cancelledOnes(); !slices.Equal(got, []string{"before", "closed-before", "late", "same-second"}) ||
		err == nil || w.event().Settled() {
		t.Errorf("%v are cancelled, error %v", got, err)
	}
	w.advance(cancel.Window + 10*time.Second)
	_, _ = w.reconcile()
	if e := w.event(); !e.Settled() || e.Status.Plan.Cancels == nil || len(w.git.writes) != 0 || len(w.runs()) != 0 {
		t.Errorf("settled %t, %d reports, %d runs", e.Settled(), len(w.git.writes), len(w.runs()))
	}
}

// A pull request that is opened and closed all the time keeps one event unsettled, not all of them.
func TestRepeatedClosesKeepOneEventUnsettled(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.pullRequest("closed", 0)
	_, _ = w.reconcile()
	if w.settled() {
		t.Fatal("it does not look once more")
	}
	w.cancelled()
	for range 3 {
		_, _ = w.reconcile()
	}
	if !w.settled() {
		t.Errorf("it still looks, although another one does: %+v", w.event().Status)
	}
}

func (w *env) cancelledOnes() (names []string) {
	for _, e := range w.events() {
		if e.Cancelled("") != nil {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return names
}

// B10: whatever call of a close fails or is the last one of its process, the other events are
// annotated, and it settles.
func TestCloseSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T) *env {
		w := newEnv(t, helloFile("hello"))
		w.pullRequest("closed", 0)
		w.addEvent("before", "synchronize", -time.Second)
		w.addEvent("label", "labeled", -time.Second)
		w.calls = nil
		return w
	}, func(t *testing.T, w *env) {
		if got := w.cancelledOnes(); !slices.Equal(got, []string{"before", "label"}) || len(w.git.writes) != 0 ||
			len(w.runs()) != 0 {
			t.Errorf("%v are cancelled, %d reports, %d runs", got, len(w.git.writes), len(w.runs()))
		}
	})
}

// An event that happened before its pull request was closed, and is planned after that, starts
// nothing. It finds the close in its cache or, if it was recorded late, in the API server. A
// reopening runs.
func TestEventPlannedAfterTheCloseStartsNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		action  string
		after   time.Duration // the close
		late    time.Duration
		settled bool
		runs    int
	}{
		"closed since":                          {"synchronize", -time.Second, 0, false, 0},
		"closed in the same second":             {"synchronize", 0, 0, false, 0},
		"reopened in the same second":           {"reopened", 0, -time.Second, false, 0},
		"reopened since":                        {"reopened", time.Second, 0, false, 1},
		"recorded long after it happened":       {"synchronize", -time.Second, time.Hour, true, 0},
		"reopened, and recorded late":           {"reopened", time.Second, time.Hour, true, 1},
		"recorded at once, and nobody shows it": {"synchronize", -time.Second, 0, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, annotated("hello", "on-event: pull_request", "on-target-branch: main"))
			closed := w.clock.Now()
			w.addEvent("closing", "closed", 0, func(e *v1alpha1.GitEvent) {
				e.Status.Plan = &v1alpha1.Plan{
					Reason: "PullRequestClosed", Cancels: &v1alpha1.Cancellation{Why: "closed", At: metav1.NewTime(closed)},
				}
				e.Status.Disposition = v1alpha1.DispositionCancels
				if test.settled {
					e.Status.Phase = v1alpha1.PhaseSettled
				}
			})
			w.edit(func(e *v1alpha1.GitEvent) {
				asPull(e, test.action, closed.Add(test.after), closed.Add(test.after+test.late))
				e.Spec.BaseRef = "main"
			})
			w.git.canWrite = func(string) (bool, error) { return true, nil }
			_, _ = w.reconcile()
			_, _ = w.reconcile()
			if len(w.runs()) != test.runs {
				t.Errorf("%d runs, want %d: %+v", len(w.runs()), test.runs, w.event().Status)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/controller"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// newPair returns an env with a push to main, of which pull request 3 to stable is open, and a
// pipeline for both.
func newPair(t *testing.T) *env {
	t.Helper()
	w := newEnv(t, annotated("hello", `on-cel-expression: "true"`))
	w.git.canWrite = func(string) (bool, error) { return true, nil }
	w.git.pulls = []git.Pull{{Number: 3, Open: true, SHA: sha, BaseRef: "stable", HeadRef: "main", HeadProjectID: 5}}
	w.edit(func(e *v1alpha1.GitEvent) {
		e.Spec.ReceivedAt, e.Labels = metav1.NewTime(w.clock.Now()),
			map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
	})
	return w
}

// synchronized records the pull request's own event of the push.
func (w *env) synchronized(happened time.Duration, change ...func(*v1alpha1.GitEvent)) {
	w.addEvent("pull-3", "synchronize", happened, append(change, func(e *v1alpha1.GitEvent) {
		e.Spec.BaseRef, e.Spec.HeadRef, e.Spec.Before = "stable", "main", strings.Repeat("b", 40)
	})...)
}

// The push comes first and waits; that is recorded once it is worth showing. The pull request's
// event runs the commit once.
func TestPushWaitsForItsPullRequest(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	if _, err := w.reconcile(); err == nil || len(w.runs()) != 0 || len(w.event().Status.Waits) != 0 {
		t.Fatalf("%v, %d runs, waits %v: want it to wait, and nothing written", err, len(w.runs()), w.event().Status.Waits)
	}
	w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
	_, _ = w.reconcile()
	if waits := w.event().Status.Waits; len(waits) != 1 || waits[0].Reason != fault.ReasonPullRequestEvent ||
		!strings.Contains(waits[0].Message, "#3") {
		t.Fatalf("waits %v", waits)
	}
	w.synchronized(-2 * time.Minute)
	if _, err := w.reconcileEvent("pull-3"); err != nil && len(w.runs()) != 1 {
		t.Fatalf("%v, %d runs of the pull request", err, len(w.runs()))
	}
	w.settle(corev1.ConditionTrue)
	if e := w.event(); len(w.runs()) != 1 || e.Status.Disposition != v1alpha1.DispositionIgnored ||
		!strings.Contains(e.Status.Plan.Decisions[0].Reason, "#3") {
		t.Errorf("%d runs, the push %+v", len(w.runs()), e.Status)
	}
}

// The pull request's event is lost: the push runs the commit. When the Git service redelivers the
// event a day later, the commit does not run twice.
func TestPushRunsWithoutAPullRequestEvent(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.settle(corev1.ConditionTrue) // some minutes pass with each reconcile
	if len(w.runs()) != 1 || w.event().Status.Disposition != v1alpha1.DispositionRuns {
		t.Fatalf("%d runs, %+v", len(w.runs()), w.event().Status)
	}
	w.clock.SetTime(w.clock.Now().Add(24 * time.Hour))
	w.synchronized(-25 * time.Hour)
	_, _ = w.reconcileEvent("pull-3")
	e := w.eventNamed("pull-3")
	if len(w.runs()) != 1 || !e.Settled() || !strings.Contains(e.Status.Plan.Decisions[0].Reason, "push-1") {
		t.Errorf("%d runs, the pull request %+v", len(w.runs()), e.Status)
	}
}

// A pull request of an untrusted user waits for approval, and keeps no push from running.
func TestPushRunsWhileThePullRequestWaitsForApproval(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.synchronized(0, func(e *v1alpha1.GitEvent) {
		e.Status = v1alpha1.GitEventStatus{
			Disposition: v1alpha1.DispositionPending, Plan: &v1alpha1.Plan{HeadSHA: sha, Reason: "PendingApproval"},
		}
	})
	if _, _ = w.reconcile(); len(w.runs()) != 1 {
		t.Errorf("%d runs: %+v", len(w.runs()), w.event().Status)
	}
}

// A push waits for the pull request's event, which starts a run. The pull request is closed before
// the push looks again, and GitHub does not list it any more: the push is left to that event.
func TestPushIsLeftToAPullRequestClosedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.synchronized(0)
	if _, err := w.reconcile(); err == nil || len(w.runs()) != 0 {
		t.Fatalf("%v, %d runs: want the push to wait", err, len(w.runs()))
	}
	if _, _ = w.reconcileEvent("pull-3"); len(w.runs()) != 1 {
		t.Fatalf("%d runs of the pull request", len(w.runs()))
	}
	w.git.pulls = nil
	w.settle(corev1.ConditionTrue)
	if e := w.event(); len(w.runs()) != 1 || !strings.Contains(e.Status.Plan.Decisions[0].Reason, "pull request #3") {
		t.Errorf("%d runs, the push %+v", len(w.runs()), e.Status)
	}
}

// Plumbline is updated between the two events: the record of an older version is found for the
// other event, by its label.
func TestPushAndPullRequestOfTwoVersionsRunOnce(t *testing.T) {
	t.Parallel()
	before := func(e *v1alpha1.GitEvent) {
		_, e.Labels[plumbline.SubjectLabel], _ = strings.Cut(e.Spec.Subjects(), ",")
	}
	t.Run("the pull request", func(t *testing.T) {
		t.Parallel()
		w := newPair(t)
		w.synchronized(0, func(e *v1alpha1.GitEvent) {
			e.Status = v1alpha1.GitEventStatus{
				Disposition: v1alpha1.DispositionRuns, Plan: &v1alpha1.Plan{HeadSHA: sha}, Runs: []v1alpha1.Run{{Name: "hello-3"}},
			}
		}, before)
		if w.settle(corev1.ConditionTrue); len(w.runs()) != 0 {
			t.Errorf("%d runs: %+v", len(w.runs()), w.event().Status)
		}
	})
	t.Run("the push", func(t *testing.T) {
		t.Parallel()
		w := newPair(t)
		w.settle(corev1.ConditionTrue)
		w.edit(before)
		w.synchronized(-time.Hour)
		if _, _ = w.reconcileEvent("pull-3"); len(w.runs()) != 1 {
			t.Errorf("%d runs: %+v", len(w.runs()), w.eventNamed("pull-3").Status)
		}
	})
}

// A pull request's event that never arrives costs few calls, and no more time than the push waits
// for it.
func TestWaitingPushPollsSlowly(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	begun, looks := w.clock.Now(), 0
	for ; len(w.runs()) == 0 && looks < 50; looks++ {
		_, err := w.reconcile()
		if again, after := controller.IsRequeueKey(err); again {
			w.clock.SetTime(w.clock.Now().Add(after))
		}
	}
	took := w.clock.Now().Sub(begun).Round(time.Second)
	if looks > 20 || w.git.pullsCalls > looks || len(w.git.newerFor) > looks || took != 5*time.Minute {
		t.Errorf("%d looks in %s, with %d calls for pull requests and %d for heads", looks, took, w.git.pullsCalls,
			len(w.git.newerFor))
	}
}

// A push shows that it waits, a pull request of its commit is opened, and what was waited for
// comes: the push, which is planned before the event of the pull request, has run the commit since
// that was opened.
func TestWaitingPushRunsIfThePullRequestOpensLater(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.git.files = []git.File{annotated("hello", `on-cel-expression: '"a".pathChanged()'`)}
	w.edit(func(e *v1alpha1.GitEvent) { e.Spec.Before = strings.Repeat("ab", 20) })
	w.git.changedErr = errTooLong
	w.git.pulls = nil
	w.retryFor(10 * time.Minute)
	if plan := w.event().Status.Plan; plan == nil || plan.Decided() {
		t.Fatalf("%+v, want a plan that waits", w.event().Status)
	}
	w.git.pulls = []git.Pull{{Number: 3, Open: true, SHA: sha, BaseRef: "stable", HeadRef: "main", HeadProjectID: 5}}
	w.addEvent("pull-3", "opened", 0, func(e *v1alpha1.GitEvent) { e.Spec.BaseRef, e.Spec.HeadRef = "stable", "main" })
	w.git.changedErr, w.git.changed = nil, git.Changes{Modified: []string{"a"}}
	w.advance(5 * time.Minute)
	_, _ = w.reconcile()
	if len(w.runs()) != 1 {
		t.Fatalf("%d runs of the push: %+v", len(w.runs()), w.event().Status)
	}
	_, _ = w.reconcileEvent("pull-3")
	if len(w.runs()) != 1 {
		t.Errorf("%d runs, the pull request %+v", len(w.runs()), w.eventNamed("pull-3").Status)
	}
}

// The pull request's own event waits for what the Git service refuses, or did so and has ended
// without a run: the check that shows that is no run, and keeps no push from running.
func TestPushIsNotLeftToAWaitingPullRequest(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]v1alpha1.Run{
		"it waits":     {Unresolved: true},
		"it has ended": {Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeSkipped}},
		"it gave up":   {Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled}},
	} {
		w := newPair(t)
		run.Pipeline, run.Namespace, run.Name = ".tekton", "acme", "pull-3-waiting"
		w.synchronized(0, func(e *v1alpha1.GitEvent) {
			e.Status = v1alpha1.GitEventStatus{
				Disposition: v1alpha1.DispositionRuns, Runs: []v1alpha1.Run{run}, Plan: &v1alpha1.Plan{
					HeadSHA: sha, Reason: "Waiting", Decisions: []v1alpha1.Decision{{File: ".tekton", Open: run.Unresolved}},
				}}
		})
		w.retryFor(10 * time.Minute)
		if len(w.runs()) != 1 {
			t.Errorf("%s: %d runs: %+v", name, len(w.runs()), w.event().Status)
		}
	}
}

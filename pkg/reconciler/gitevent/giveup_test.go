// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/fairqueue"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

const oneDay = 24 * time.Hour

var (
	errUninstalled = fault.Operatorf(fault.ReasonInstallationGone, "the GitHub App was uninstalled from acme: install it again, then push or redeliver")
	errHidden      = fault.Operatorf("RepositoryNotReadable", "GitHub shows no repository acme/app to the App")
	errUnclaimed   = fault.Transientf(fault.ReasonNotClaimedYet, "https://git.example/acme/app has no RepositoryClaim yet")
	errNoRoom      = fault.Throttledf(quota.ReasonRepository, time.Minute, "the open events have used it up")
	errNoCommit    = fault.Transientf(fault.ReasonCommitUnknown, "acme/app has no commit %s (yet)", sha)
)

// received returns an env whose event was received now.
func received(t *testing.T) *env {
	t.Helper()
	w := newEnv(t, helloFile("hello"))
	e := w.event()
	e.Spec.ReceivedAt = metav1.NewTime(w.clock.Now())
	w.replaceEvent(e)
	return w
}

// reconcileEvery lets time pass with a reconcile at every step until the event is settled, and
// returns how long that took.
func (w *env) reconcileEvery(step, limit time.Duration, told *[]string) time.Duration {
	w.t.Helper()
	for passed := time.Duration(0); passed <= limit; passed += step {
		_ = w.reconcileTelling(told)
		if w.event().Settled() {
			return passed
		}
		w.advance(step)
	}
	return -1
}

func (w *env) wantGivenUp(reason string, told []string) {
	w.t.Helper()
	e := w.event()
	if !e.Settled() || e.Status.Disposition != v1alpha1.DispositionRefused || e.Status.Plan.Reason != reason || e.Status.Plan.Message == "" {
		w.t.Errorf("the event is %s %s with %+v, want it settled as Refused because of %s", e.Status.Phase, e.Status.Disposition, e.Status.Plan, reason)
	}
	n := 0
	for _, news := range told {
		if strings.Contains(news, attempt.ReasonGivenUp) {
			n++
		}
	}
	if n != 1 {
		w.t.Errorf("the Repository was told %d times that the event is given up, want once: %q", n, told)
	}
}

// G8: an event is refused when the Git service has said twice, OperatorRetry apart, that the App is
// not installed any more. Until then it waits for a reinstallation.
func TestEventOfAnUninstalledAppIsRefused(t *testing.T) {
	t.Parallel()
	w, told := received(t), []string{}
	w.git.err = errUninstalled
	if after := w.reconcileEvery(time.Minute, time.Hour, &told); after != fault.OperatorRetry {
		t.Errorf("ended after %v, want %v", after, fault.OperatorRetry)
	}
	w.wantGivenUp(fault.ReasonInstallationGone, told)
	if len(w.git.writes) != 0 {
		t.Errorf("the commit was told %v", w.git.writes)
	}
}

func TestReinstalledAppIsServed(t *testing.T) {
	t.Parallel()
	w := received(t)
	w.git.err = errUninstalled
	w.advanceAndReconcile(time.Second)
	w.advanceAndReconcile(time.Minute)
	w.git.err = nil
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}

// S5: an event that waits for an operator, or for a missing commit, is refused once the Git service
// does not redeliver it any more: after 3 days on github.com, after 7 on an Enterprise Server.
func TestEventThatWaitsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		err      *fault.Error
		settings map[string]string
		want     time.Duration
	}{
		"a repository that was deleted":                  {errHidden, nil, 3 * oneDay},
		"a repository of an Enterprise Server":           {errHidden, map[string]string{"github-url": "https://ghe.example.com"}, 7 * oneDay},
		"stubs that are kept longer make no wait longer": {errHidden, map[string]string{"settled-retention-days": "90"}, 7 * oneDay},
		"a commit that is gone":                          {errNoCommit, nil, 3 * oneDay},
		"a URL that nobody claims any more":              {errUnclaimed, nil, 3 * oneDay},
		"a plan that finds no room":                      {errNoRoom, nil, 3 * oneDay},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			w, told := received(t), []string{}
			w.git.err, w.settings = c.err, c.settings
			_, _ = w.reconcile()
			_, _ = w.reconcile()
			if after := w.reconcileEvery(30*time.Minute, 8*oneDay, &told); after != c.want {
				t.Errorf("ended after %v, want %v", after, c.want)
			}
			w.wantGivenUp(c.err.Reason, told)
		})
	}
}

// G10: a commit that the Git service does not show is polled with backoff for ten minutes, because
// a replica may lag, and then slowly.
func TestMissingCommitIsPolledSlowly(t *testing.T) {
	t.Parallel()
	w := received(t)
	w.git.err = errNoCommit
	w.advanceAndReconcile(time.Second)
	w.advanceAndReconcile(9 * time.Minute)
	if wait := w.event().Status.Waits[0]; wait.Class != "Transient" || wait.NotBefore != nil {
		t.Errorf("after nine minutes it waits with %+v, want the workqueue's backoff", wait)
	}
	w.advanceAndReconcile(10 * time.Minute) // the backoff's next try is after as long as it has failed
	if wait := w.event().Status.Waits[0]; wait.Class != "Throttled" || wait.NotBefore == nil || wait.NotBefore.Sub(w.clock.Now()) != fault.OperatorRetry {
		t.Errorf("after nineteen minutes it waits with %+v, want a retry in %v", wait, fault.OperatorRetry)
	}
	w.git.err = nil
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}

// An operator can still fix a problem after an outage of days: the event waits an hour for that.
func TestEventOutlivesALongOutage(t *testing.T) {
	t.Parallel()
	w, told := received(t), []string{}
	w.git.err = fault.Transientf(fault.ReasonGitUnavailable, "502")
	if after := w.reconcileEvery(time.Hour, 5*oneDay, &told); after >= 0 {
		t.Fatalf("ended after %v of an outage", after)
	}
	w.git.err = errHidden
	if after := w.reconcileEvery(5*time.Minute, 2*time.Hour, &told); after != time.Hour {
		t.Errorf("ended %v after the outage, want %v", after, time.Hour)
	}
	w.wantGivenUp("RepositoryNotReadable", told)
}

// A controller that was down for days retries before it gives anything up, also if the event has no
// slot at first.
func TestOldRefusalEndsNothing(t *testing.T) {
	t.Parallel()
	w, told := received(t), []string{}
	w.git.err = errHidden
	if after := w.reconcileEvery(5*time.Minute, 2*time.Hour, &told); after >= 0 {
		t.Fatalf("ended after %v", after)
	}
	w.advance(4 * oneDay)
	w.git.err = fault.Throttledf(fault.ReasonBusy, time.Second, "waiting for other events")
	_ = w.reconcileTelling(&told)
	if w.event().Settled() {
		t.Fatal("ended without being asked for")
	}
	w.git.err = nil
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}

// ended returns an env whose run is finished, and whose report is refused.
func ended(t *testing.T, refusal *fault.Error) *env {
	t.Helper()
	w := received(t)
	w.advanceAndReconcile(time.Second)
	if len(w.runs()) != 1 {
		t.Fatalf("%d runs, want one", len(w.runs()))
	}
	w.hook = func(_ int, call string) outcome {
		if strings.HasPrefix(call, "put check") {
			return outcome{err: refusal}
		}
		return outcome{}
	}
	return w
}

// G8, G10: a result that cannot be reported is given up like an event, never while the run goes on,
// and no sooner than the same time after it finished.
func TestResultThatCannotBeReportedIsGivenUp(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		err  *fault.Error
		want time.Duration
	}{
		"at once when the App was uninstalled":                    {errUninstalled, fault.OperatorRetry},
		"after the window when the repository may come back":      {fault.Operatorf("RepositoryNotInstalled", "it is not installed on this repository"), 3 * oneDay},
		"after the window when the commit may be a replica's lag": {errNoCommit, 3 * oneDay},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			w, told := ended(t, c.err), []string{}
			if after := w.reconcileEvery(30*time.Minute, 5*oneDay, &told); after >= 0 {
				t.Fatalf("given up after %v although the run goes on", after)
			}
			run := w.runs()[0]
			now := metav1.NewTime(w.clock.Now())
			run.Status.CompletionTime = &now
			run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue, Reason: "Done"})
			w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
			step := min(5*time.Minute, c.want)
			after := w.reconcileEvery(step, 5*oneDay, &told)
			if after < c.want-step || after > c.want+step {
				t.Errorf("given up after %v, want %v", after, c.want)
			}
			e := w.event()
			if reported := e.Status.GetCondition(v1alpha1.GitEventReported); reported.IsTrue() || reported.Reason != c.err.Reason || e.Status.Disposition != v1alpha1.DispositionRuns {
				t.Errorf("it is %s with Reported %v, want the reason why nothing was reported", e.Status.Disposition, reported)
			}
		})
	}
}

// G8: a run whose token cannot be minted any more is not created, and its event is refused.
func TestRunOfAnUninstalledAppIsNotCreated(t *testing.T) {
	t.Parallel()
	w, told := received(t), []string{}
	w.hook = func(_ int, call string) outcome {
		if call == "mint token" || strings.HasPrefix(call, "put check") {
			return outcome{err: errUninstalled}
		}
		return outcome{}
	}
	if after := w.reconcileEvery(5*time.Minute, time.Hour, &told); after < fault.OperatorRetry || after > 3*fault.OperatorRetry {
		t.Errorf("ended after %v", after)
	}
	if e := w.event(); e.Status.Disposition != v1alpha1.DispositionRefused || e.Status.Plan.Reason != attempt.ReasonGivenUp || len(w.runs()) != 0 {
		t.Errorf("%d runs, the event is %s with %+v, want it refused without a run", len(w.runs()), e.Status.Disposition, e.Status.Plan)
	}
}

// A run that cannot be created because of a missing permission in the cluster is not given up: it
// is planned, and needs nothing of the Git service.
func TestRunThatWaitsForAPermissionIsNotGivenUp(t *testing.T) {
	t.Parallel()
	w, told := received(t), []string{}
	w.hook = always("create pipelineruns", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden,
		Message: `pipelineruns.tekton.dev is forbidden: User "system:serviceaccount:plumbline:controller" cannot create resource "pipelineruns"`}})
	if after := w.reconcileEvery(time.Hour, 8*oneDay, &told); after >= 0 {
		t.Fatalf("ended after %v", after)
	}
	w.hook = nil
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}

// A problem that is fixed in the last minutes counts, although the event had no slot of its Git
// host at once.
func TestEventWithoutASlotIsNotGivenUp(t *testing.T) {
	t.Parallel()
	w, told := received(t), []string{}
	w.git.err = errHidden
	if after := w.reconcileEvery(30*time.Minute, 3*oneDay-time.Hour, &told); after >= 0 {
		t.Fatalf("ended after %v", after)
	}
	w.advanceAndReconcile(25 * time.Minute)
	w.git.err = nil
	w.alive.repositoryChanged(nil, repository())
	release, _ := w.alive.queue.AcquireService(fairqueue.Request{Namespace: "other", Host: "git.example"})
	w.advanceAndReconcile(6 * time.Minute)
	if w.event().Settled() {
		t.Fatal("given up although only the turn was missing")
	}
	release()
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}

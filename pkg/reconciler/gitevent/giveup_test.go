// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

const oneDay = 24 * time.Hour

var (
	errUninstalled = fault.Operatorf(fault.ReasonInstallationGone,
		"the GitHub App was uninstalled from acme: install it again, then push or redeliver")
	errHidden    = fault.Operatorf("RepositoryNotReadable", "GitHub shows no repository acme/app to the App")
	errUnclaimed = fault.Transientf(fault.ReasonNotClaimedYet, "https://git.example/acme/app has no RepositoryClaim yet")
	errNoRoom    = fault.Throttledf(quota.ReasonRepository, time.Minute, "the open events have used it up")
	errNoCommit  = fault.Transientf(fault.ReasonCommitUnknown, "acme/app has no commit %s (yet)", sha)
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
	if !e.Settled() || e.Status.Disposition != v1alpha1.DispositionRefused || e.Status.Plan.Reason != reason ||
		e.Status.Plan.Message == "" {
		w.t.Errorf("the event is %s %s with %+v, want it settled as Refused because of %s", e.Status.Phase,
			e.Status.Disposition, e.Status.Plan, reason)
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
		"a repository that was deleted": {errHidden, nil, 3 * oneDay},
		"a repository of an Enterprise Server": {
			errHidden, map[string]string{"github-url": "https://ghe.example.com"}, 7 * oneDay,
		},
		"stubs that are kept longer make no wait longer": {
			errHidden, map[string]string{"settled-retention-days": "90"}, 7 * oneDay,
		},
		"a commit that is gone":             {errNoCommit, nil, 3 * oneDay},
		"a URL that nobody claims any more": {errUnclaimed, nil, 3 * oneDay},
		"a plan that finds no room":         {errNoRoom, nil, 3 * oneDay},
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
	if wait := w.event().Status.Waits[0]; wait.Class != "Throttled" || wait.NotBefore == nil ||
		wait.NotBefore.Sub(w.clock.Now()) != fault.OperatorRetry {
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

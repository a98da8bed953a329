// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

const newerSHA = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

// B11: an event that is superseded while it waits for its plan ends without a run and a check.
func TestSupersededWhileItWaitsForItsPlan(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.git.err, w.git.newer = fault.Transientf(fault.ReasonGitUnavailable, "502"), newerSHA
	_, _ = w.reconcile()
	if len(w.git.newerFor) != 0 {
		t.Errorf("the first attempt made %d calls to ask what is newer, want none", len(w.git.newerFor))
	}
	w.git.err = nil
	_, _ = w.reconcile()
	e := w.event()
	if !e.Settled() || e.Status.Disposition != v1alpha1.DispositionSuperseded ||
		e.Status.Plan.Message != "superseded by "+newerSHA {
		t.Errorf("status %+v", e.Status)
	}
	if len(w.git.writes) != 0 || len(w.runs()) != 0 || w.secrets() != 1 {
		t.Errorf("checks %v, %d runs, %d secrets: want none but the App's", w.git.writes, len(w.runs()), w.secrets())
	}
}

// A replica that does not have a push yet names the commit that the push replaced: that commit does
// not supersede it.
func TestReplacedCommitDoesNotSupersede(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	e := w.event()
	e.Spec.Before = newerSHA
	w.replaceEvent(e)
	w.git.err, w.git.newer = fault.Transientf(fault.ReasonGitUnavailable, "502"), newerSHA
	_, _ = w.reconcile()
	w.git.err = nil
	_, _ = w.reconcile()
	if len(w.git.newerFor) == 0 || len(w.runs()) != 1 {
		t.Errorf("%d runs after %d calls to ask what is newer, want 1 and some: %+v", len(w.runs()), len(w.git.newerFor),
			w.event().Status)
	}
}

// Nor does any other commit while a replica may not have the event's: two pushes back, or for a
// comment the commit at its plan.
func TestLaggingReplicaSupersedesNothing(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]string{"plan": "get secrets", "create": "create pipelineruns"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			w.edit(func(e *v1alpha1.GitEvent) { e.Spec.ReceivedAt = metav1.NewTime(w.clock.Now()) })
			w.hook, w.git.newer = always(step, errRefused), newerSHA
			_, _ = w.reconcile()
			w.hook = nil
			for range 4 {
				w.advance(5 * time.Second)
				if _, err := w.reconcile(); err == nil {
					t.Fatal("no later reconcile asks again")
				}
			}
			if e := w.event(); len(w.runs()) != 0 || e.Settled() || len(w.git.newerFor) != 4 {
				t.Errorf("%d runs after Git was asked %d times, status %+v: want that it waits", len(w.runs()), len(w.git.newerFor),
					e.Status)
			}
			w.git.newer = "" // the replica has heard of it
			w.settle(corev1.ConditionTrue)
			w.wantSuccess()
		})
	}
}

// A usual event makes no call; one that waited and is current runs; one that cannot be checked
// waits.
func TestNotSuperseded(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.git.newer = newerSHA
	w.settle(corev1.ConditionTrue)
	if len(w.git.newerFor) != 0 {
		t.Errorf("an event that did not wait made %d calls to ask what is newer", len(w.git.newerFor))
	}
	for name, step := range map[string]string{"plan": "get secrets", "create": "create pipelineruns"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			w.hook = always(step, errRefused)
			_, _ = w.reconcile()
			w.hook = nil
			w.git.newerErr = fault.Transientf(fault.ReasonGitUnavailable, "502")
			for range 3 {
				if _, err := w.reconcile(); err == nil {
					t.Error("what is newer cannot be told, and the event is not requeued")
				}
			}
			if len(w.runs()) != 0 || w.event().Status.Disposition == v1alpha1.DispositionSuperseded {
				t.Errorf("%d runs, disposition %s while it is not known whether it is superseded", len(w.runs()),
					w.event().Status.Disposition)
			}
			w.git.newerErr = nil
			w.settle(corev1.ConditionTrue)
			w.wantSuccess()
		})
	}
}

// If an event is superseded while one of its runs waits to be created, that run's check is
// cancelled and says so, its secret is deleted, and the run that exists goes on.
func TestSupersededWhileARunWaitsToBeCreated(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("first"), helloFile("second"))
	creates := 0
	w.hook = func(_ int, call string) outcome {
		if call == "create pipelineruns" {
			creates++
			if creates > 1 {
				return outcome{err: errRefused}
			}
		}
		return outcome{}
	}
	_, _ = w.reconcile()
	w.git.newer = newerSHA
	w.settle(corev1.ConditionTrue)
	if creates != 2 {
		t.Errorf("%d creates, want no third after it was superseded", creates)
	}
	for _, check := range w.git.checks {
		want, words := status.Success, ""
		if strings.HasSuffix(check.Name, "second") {
			want, words = status.Cancelled, "superseded by "+newerSHA
		}
		if check.Conclusion != want || !strings.Contains(check.Text, words) {
			t.Errorf("check %q says %q: %s", check.Name, check.Conclusion, check.Text)
		}
	}
	if w.secrets() != 1 {
		t.Errorf("%d secrets are left, want the App's only", w.secrets())
	}
}

// If an event is superseded while a pipeline of it waits, its runs go on. A pipeline that is not
// decided, or selected and not created yet, is given up.
func TestSupersededWhileAPipelineWaits(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.fail = func(string) int { return 503 }
	w := newEnv(t, helloFile("hello"), annotated("docs", "on-path-change: 'docs/**'"), referring("lint", "lint", "lint"))
	w.useHub(h)
	w.git.changedErr = fault.Transientf("GitUnavailable", "502")
	_, _ = w.reconcile()
	w.git.newer = newerSHA
	w.settle(corev1.ConditionTrue)
	if diff := cmp.Diff(map[string]status.Conclusion{"hello": status.Success, "lint": status.Cancelled},
		w.conclusions()); diff != "" {
		t.Error(diff)
	}
	if got := w.reasons()["docs"]; got != "superseded by "+newerSHA ||
		w.event().Status.Disposition != v1alpha1.DispositionRuns {
		t.Errorf("docs: %q, disposition %s", got, w.event().Status.Disposition)
	}
}

// A comment is about the head at the moment of its plan: before that no commit supersedes it, and
// after that another head does.
func TestWaitingCommentIsSuperseded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fails string
		asked []string
		runs  int
	}{
		"not before it is planned": {"get eventpayloads", nil, 1},
		"while its run waits":      {"create pipelineruns", []string{sha, sha}, 0}, // the first answer may be of before
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := commented(t, "/deploy", annotated("deploy", "on-comment: ^/deploy"))
			w.hook = always(test.fails, errRefused)
			_, _ = w.reconcile()
			w.hook = nil
			w.git.newer = newerSHA
			w.settle(corev1.ConditionTrue)
			if diff := cmp.Diff(test.asked, w.git.newerFor); diff != "" || len(w.runs()) != test.runs {
				t.Errorf("%d runs, want %d; asked what supersedes (-want +got):\n%s", len(w.runs()), test.runs, diff)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"knative.dev/pkg/controller"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/observe"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/renew"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Whatever call fails, is lost, or is the last before the process dies while a run goes on, the
// token in its secret never expires. Two lives of a token have every call that a longer run makes.
func TestTokenOfARunningRunNeverExpires(t *testing.T) {
	t.Parallel()
	const lives = 2
	free := newEnv(t, helloFile("hello"))
	free.followTokenLives(lives)
	if n := len(free.git.tokens); n != 2*lives {
		t.Fatalf("%d mints in %d token lives, want one each half: calls %v", n, lives, free.calls)
	}
	for kind, fault := range failures() {
		// the run exists and is reported
		for k := slices.Index(free.calls, "patch pipelineruns") + 2; k <= len(free.calls); k++ {
			t.Run(fmt.Sprintf("%s/call %d %s", kind, k, free.calls[k-1]), func(t *testing.T) {
				t.Parallel()
				w := newEnv(t, helloFile("hello"))
				w.hook = func(n int, _ string) outcome {
					if n == k {
						return fault
					}
					return outcome{}
				}
				w.followTokenLives(lives)
				w.hook = nil
				w.settle(corev1.ConditionTrue)
				w.wantSuccess()
			})
		}
	}
}

// An outage of the Git service that leaves some of the spare half of a token's life does not cost
// the run its token.
func TestTokenOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	q := newQueue(w)
	begin := w.clock.Now()
	outage := func() bool {
		since := w.clock.Since(begin)
		return since >= 29*time.Minute && since < 52*time.Minute
	}
	w.hook = func(_ int, call string) outcome {
		if call == "mint token" && outage() {
			return outcome{err: fault.Transientf(fault.ReasonGitUnavailable, "503")}
		}
		return outcome{}
	}
	for range 120 {
		q.run(w.clock.Now().Add(time.Minute))
		w.tokenWorks()
	}
}

// followTokenLives follows the event for n token lives, and reconciles it when a real queue would.
// It requires that the secret of an existing run always holds a valid token.
func (w *env) followTokenLives(n int) {
	w.t.Helper()
	tick := w.git.life() / 60
	end, next := w.clock.Now().Add(time.Duration(n)*w.git.life()), w.clock.Now()
	for ; w.clock.Now().Before(end); w.clock.SetTime(w.clock.Now().Add(tick)) {
		if run := w.event().Status.Runs; len(run) > 0 && run[0].UID != "" {
			w.tokenWorks()
		}
		if now := w.clock.Now(); !now.Before(next) {
			next = w.reconcileAndSchedule(end)
		}
	}
}

// reconcileAndSchedule reconciles once and returns when the queue would do it again.
func (w *env) reconcileAndSchedule(never time.Time) time.Time {
	killed, err := w.reconcile()
	now := w.clock.Now()
	requeue, after := controller.IsRequeueKey(err)
	next := never
	switch {
	case killed, err != nil && !requeue: // a new process looks at every event, and the backoff starts small
		return now
	case requeue:
		next = now.Add(after)
	}
	for _, after := range w.wakes {
		if at := now.Add(after); at.Before(next) {
			next = at
		}
	}
	return next
}

func (w *env) tokenWorks() {
	w.t.Helper()
	secret := w.secret()
	if secret == nil {
		w.t.Fatalf("at %v the run has no secret", w.clock.Now())
	}
	got := string(secret.Data["git-provider-token"])
	works := func(token provider.Token) bool { return token.Value == got && token.ExpiresAt.After(w.clock.Now()) }
	if !slices.ContainsFunc(w.git.tokens, works) {
		w.t.Fatalf("at %v the secret holds %q; minted were %v", w.clock.Now(), got, w.git.tokens)
	}
}

// secret returns the run's git-auth secret, nil if there is none.
func (w *env) secret() *corev1.Secret {
	w.t.Helper()
	obj, err := w.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), tenant,
		w.event().Status.Runs[0].Secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		w.t.Fatalf("unexpected %T", obj)
	}
	return secret
}

// running returns an env with one run that goes on and has nothing left to report.
func running(t *testing.T) *env {
	t.Helper()
	w := newEnv(t, helloFile("hello"))
	for range 3 {
		_, _ = w.reconcile()
	}
	w.calls = nil
	return w
}

func (w *env) advance(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// A renewal costs the token, a read and a patch of the secret, and the status write that records
// it. It is not reported.
func TestRenewalReportsNothing(t *testing.T) {
	t.Parallel()
	w := running(t)
	before, writes := w.event(), len(w.git.writes)
	if _, err := w.reconcile(); err != nil || !slices.Equal(w.wakes, []time.Duration{30 * time.Minute}) {
		t.Fatalf("error %v, woken after %v: want nil, which resets the backoff, and half of the token's life", err, w.wakes)
	}
	w.calls = nil
	w.advance(30 * time.Minute)
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(w.calls),
		"[get gitevents get secrets get repositories mint token patch secrets patch secrets update gitevents/status]"; got != want {
		t.Errorf("calls %s, want %s", got, want)
	}
	after := w.event()
	if len(w.git.writes) != writes || len(after.Status.Waits) != 0 {
		t.Errorf("%d reports, waits %v: want none", len(w.git.writes)-writes, after.Status.Waits)
	}
	for i, c := range after.Status.Conditions {
		if c != before.Status.Conditions[i] {
			t.Errorf("condition %v became %v", before.Status.Conditions[i], c)
		}
	}
}

func TestRenewalWithChangedObjects(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change  func(w *env)
		renewed bool
	}{
		"at half of the token's life": {func(w *env) { w.advance(30 * time.Minute) }, true},
		"made again if somebody deleted it": {func(w *env) {
			w.advance(30 * time.Minute)
			w.must(w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), tenant,
				w.event().Status.Runs[0].Secret))
		}, true},
		"not without its Repository": {func(w *env) {
			w.repository = func(repository *pacv1alpha1.Repository) { repository.Spec.URL = "https://git.example/acme/other" }
			w.hook = always("get repositories", apierrors.NewNotFound(pacv1alpha1.Resource("repositories"), "app"))
			w.advance(30 * time.Minute)
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := running(t)
			test.change(w)
			_, _ = w.reconcile()
			secret := w.secret()
			if secret == nil {
				t.Fatal("there is no secret")
			}
			if got := string(secret.Data["git-provider-token"]) == "token-2"; got != test.renewed {
				t.Errorf("renewed: %v, want %v", got, test.renewed)
			}
			if !strings.Contains(string(secret.Data[".git-credentials"]),
				"//bot:"+string(secret.Data["git-provider-token"])+"@") {
				t.Error("the keys of the secret hold different tokens, or another user's")
			}
		})
	}
}

// I-10: a renewal that never works is a wait of its own. It changes no report, and the event
// settles when the run finishes.
func TestEventSettlesDespiteFailedRenewals(t *testing.T) {
	t.Parallel()
	for call, class := range map[string]fault.Class{"patch secrets": fault.Operator, "mint token": fault.Transient} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w := running(t)
			w.hook = always(call, errDenied)
			w.advance(45 * time.Minute)
			for range 3 {
				_, _ = w.reconcile()
			}
			waits := w.event().Status.Waits
			if len(waits) != 1 || waits[0].Step != v1alpha1.StepRenew || waits[0].Class != class.String() {
				t.Errorf("waits %+v, want one of step renew and class %s", waits, class)
			}
			w.finishRuns(corev1.ConditionTrue)
			for range 3 { // what may not be changed is deleted after a while
				_, _ = w.reconcile()
				w.advance(6 * time.Minute)
			}
			if !w.event().Settled() {
				t.Errorf("not settled: %+v", w.event().Status.Waits)
			}
			w.wantSuccess()
		})
	}
}

// The backoff of a patch that is refused for the run's whole life does not delay the renewal.
func TestBackoffOfAnotherStepDelaysNoRenewal(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = always("patch pipelineruns", errDenied)
	_, err := w.reconcile()
	if err == nil || !slices.Equal(w.wakes, []time.Duration{observe.UnwatchedPoll, 30 * time.Minute, backoff.MinWait}) {
		t.Errorf("error %v, woken after %v: want an error, the look at a run that is too new for the cache, half of the token's life, and the first attempt after a failure", err, w.wakes)
	}
	if w.git.checks["1"].State != status.InProgress {
		t.Errorf("checks %v", w.git.checks)
	}
}

// A report that hangs until its deadline leaves time for a renewal and for the steps after it.
func TestHangingReportLeavesTimeToRenew(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.finishRuns(corev1.ConditionTrue)
	latest := time.Now().Add(reconcileDeadline - renew.Limit)
	_, _ = w.reconcile()
	if !w.git.putBy.Before(latest) {
		t.Errorf("the report may last until %v, want before %v", w.git.putBy, latest)
	}
}

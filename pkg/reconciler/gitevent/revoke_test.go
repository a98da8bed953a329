// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/fairqueue"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/settle"
)

// S28: an event whose tokens cannot be revoked yet, because other events have all slots of its Git
// service, is not settled without that, however long it takes.
func TestRevocationWaitsForASlot(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.hook = only("revoke token", outcome{err: fault.Transientf("GitServiceUnavailable", "502")})
	w.finishRuns(corev1.ConditionTrue)
	_, _ = w.reconcile() // its end is reported
	w.hook = nil
	var others []func()
	for {
		release, err := w.process().queue.AcquireService(fairqueue.Request{Event: "other", Namespace: "other",
			Host: "git.example"})
		if err != nil {
			break
		}
		others = append(others, release)
	}
	w.process().queue.Remove("other")
	for spent := time.Duration(0); spent < 2*settle.RevokeLimit; spent += 20 * time.Second {
		w.advance(20 * time.Second)
		_, _ = w.reconcile()
		if w.event().Settled() {
			t.Fatalf("settled after %v; revoked are %v of %v", spent, w.git.revoked, w.minted())
		}
	}
	for _, release := range others {
		release()
	}
	_, _ = w.reconcile()
	if diff := cmp.Diff(w.minted(), w.git.revoked); diff != "" || !w.event().Settled() {
		t.Errorf("settled: %t; minted and revoked: %s", w.event().Settled(), diff)
	}
}

// One failed revocation that is not retried costs one call: the tokens of the other runs are left,
// too. Each call may take long, and an event may have hundreds of runs.
func TestRevocationIsGivenUpForAllRuns(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"), helloFile("other"))
	for range 3 {
		_, _ = w.reconcile()
	}
	w.hook = always("revoke token", fault.Operatorf(fault.ReasonPermissionMissing, "suspended"))
	w.finishRuns(corev1.ConditionTrue)
	_, _ = w.reconcile()
	if n := w.count("revoke token"); n != 1 || len(w.minted()) != 2 {
		t.Errorf("%d calls to revoke %d tokens, want one", n, len(w.minted()))
	}
	if !w.event().Settled() || w.secrets() != 1 {
		t.Errorf("settled: %t, with %d secrets, want the App's", w.event().Settled(), w.secrets())
	}
}

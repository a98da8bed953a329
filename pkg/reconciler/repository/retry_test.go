// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// While the status cannot be written, the wait for the cache of events and the day of a claim still
// end in time. Neither makes the failing write come sooner.
func TestTimersSurviveAFailingWrite(t *testing.T) {
	r := repo("team", "app", appURL)
	w := newEnv(t, r, claimed("https://github.com/acme/old", "team", "app", nil))
	w.synced = false
	attempts := 0
	w.client.PrependReactor("update", "repositories", func(clienttesting.Action) (bool, runtime.Object, error) {
		attempts++
		return true, nil, apierrors.NewInternalError(context.DeadlineExceeded)
	})
	for now := start; now.Before(start.Add(time.Hour)); now = now.Add(time.Second) {
		w.clock.SetTime(now)
		w.catchUp()
		w.wakes = nil
		if err := w.r.Reconcile(t.Context(), "team/app"); err == nil || len(w.wakes) != 1 || w.wakes[0] > syncWait {
			t.Fatalf("at %v: error %v, woken after %v: want another try a second later", now, err, w.wakes)
		}
	}
	if attempts < 8 || attempts > 25 {
		t.Errorf("the status was written %d times in an hour, want as the backoff does", attempts)
	}
	w.synced = true
	w.clock.SetTime(start.Add(claimKept))
	_ = w.r.Reconcile(t.Context(), "team/app")
	if w.claimOf("https://github.com/acme/old") != nil {
		t.Error("the claim is kept for more than its day")
	}
}

// A write of the status that failed is not needed any more, while a claim still waits for its day.
// A failure hours later is retried at once.
func TestObsoleteWriteEndsItsBackoff(t *testing.T) {
	t.Parallel()
	w := newEnv(t, repo("team", "app", appURL), claimed("https://github.com/acme/old", "team", "app", nil))
	failing := false
	w.client.PrependReactor("update", "repositories", func(clienttesting.Action) (bool, runtime.Object, error) {
		return failing, nil, apierrors.NewServiceUnavailable("once")
	})
	look := func(after time.Duration, fails bool, events ...*v1alpha1.GitEvent) {
		w.clock.SetTime(w.clock.Now().Add(after))
		w.catchUp()
		failing = fails
		_ = w.r.Reconcile(t.Context(), "team/app")
	}
	held := waiting("push-1", operatorWait("CredentialsMissing", 0))
	look(0, false)
	w.events = []*v1alpha1.GitEvent{held}
	look(time.Second, true)
	w.events = nil
	look(time.Second, false)
	w.events = []*v1alpha1.GitEvent{held}
	look(2*time.Hour, true)
	look(time.Second, false)
	if w.repository("team", "app").Status.GetCondition(pacv1alpha1.RepositoryCredentials).IsTrue() {
		t.Error("the condition is not written a second after one write failed")
	}
}

// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// The second after which the cache of events is asked again, and the day that a claim is kept, are known although the status
// cannot be written meanwhile; and the write that fails is not hurried by either.
func TestAKnownTimeIsKeptBesideAFailingWrite(t *testing.T) {
	r := repo("team", "app", appURL)
	w := newWorld(t, r, claimed("https://github.com/acme/old", "team", "app", nil))
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
			t.Fatalf("at %v: error %v, woken after %v: want another look a second later", now, err, w.wakes)
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

// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// delivered is a delivery of a Repository.
func delivered(repository string, trigger v1alpha1.Trigger) *v1alpha1.GitEventSpec {
	return &v1alpha1.GitEventSpec{
		Trigger: trigger, Repository: v1alpha1.RepositoryReference{Namespace: "team", Name: repository},
	}
}

// acquireFor takes a slot for a delivery of that size.
func (l *RepositoryLimit) acquireFor(
	t *testing.T,
	repository string,
	trigger v1alpha1.Trigger,
	size int,
) (release func()) {
	t.Helper()
	return l.Acquire(t.Context(), SlotKeyOf(delivered(repository, trigger), make([]byte, size)), size, func() {})
}

// 40 pull requests of one Repository that arrive together are recorded one after the other. A push
// to it, a pull request of another Repository and a heavy body do not wait.
func TestSlotsSerialisePullRequestsOfARepository(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all RepositoryLimit
		began := time.Now()
		ended := make(chan time.Duration, 40)
		for range 40 {
			go func() {
				defer all.acquireFor(t, "app", v1alpha1.TriggerPullRequest, 1000)()
				<-time.After(10 * time.Millisecond) // what the API server takes
				ended <- time.Since(began)
			}()
		}
		synctest.Wait()
		for _, other := range []func(){
			all.acquireFor(t, "app", v1alpha1.TriggerPush, 1000),
			all.acquireFor(t, "other", v1alpha1.TriggerPullRequest, 1000),
			all.acquireFor(t, "app", v1alpha1.TriggerPullRequest, heavyBytes+1),
		} {
			other()
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("other deliveries waited for %v", waited)
		}
		last := time.Duration(0)
		for range 40 {
			last = max(last, <-ended)
		}
		if want := 40 / pullSlots * 10 * time.Millisecond; last != want {
			t.Errorf("the last pull request is recorded after %v, want %v", last, want)
		}
		synctest.Wait()
		if len(all.byKey) != 0 || all.waiting != 0 {
			t.Errorf("%d unused slots and %d bytes are left, want none", len(all.byKey), all.waiting)
		}
	})
}

// After 2.5 s three deliveries take overflow slots, and after 3 s the next one proceeds without
// one. None of them takes the slot of another delivery.
func TestSlotsLetLateDeliveriesProceed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all RepositoryLimit
		key := SlotKey{"team", 1}
		acquire := func() (release func()) { return all.Acquire(t.Context(), key, 1, func() {}) }
		first, began := acquire(), time.Now()
		waited := make(chan time.Duration)
		release := make(chan struct{})
		for range overflowSlots + 1 {
			go func() {
				defer acquire()()
				waited <- time.Since(began)
				<-release
			}()
		}
		for range overflowSlots {
			if after := <-waited; after != slotWait-overflowWait {
				t.Errorf("an overflow slot was taken after %v, want %v", after, slotWait-overflowWait)
			}
		}
		if after := <-waited; after != slotWait {
			t.Errorf("the last delivery proceeded after %v, want %v", after, slotWait)
		}
		close(release)
		synctest.Wait()
		if len(all.byKey[key].slots) != 1 {
			t.Error("the slot of another delivery was released")
		}
		first()
		if third := acquire(); time.Since(began) != slotWait {
			t.Error("a delivery waited although a slot was free")
		} else {
			third()
		}
		if len(all.byKey) != 0 || all.waiting != 0 {
			t.Errorf("unused slots or %d bytes are left", all.waiting)
		}
	})
}

// When the waiting deliveries take waitingBytes, the next delivery proceeds at once.
func TestSlotsBoundTheBytesThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all RepositoryLimit
		key := SlotKey{"team", 1}
		defer all.Acquire(t.Context(), key, 1, func() {})()
		go func() { all.Acquire(t.Context(), key, waitingBytes, func() {})() }()
		synctest.Wait()
		began := time.Now()
		all.Acquire(t.Context(), key, 1, func() { t.Error("waits was called") })()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it waited for %v", waited)
		}
	})
}

// A heavy push does not wait for pull requests with long descriptions, which untrusted users write.
func TestHeavyPushDoesNotWaitForHeavyPullRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all RepositoryLimit
		defer all.acquireFor(t, "app", v1alpha1.TriggerPullRequest, heavyBytes+1)()
		began := time.Now()
		defer all.acquireFor(t, "app", v1alpha1.TriggerPush, heavyBytes+1)()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it waited for %v", waited)
		}
	})
}

// A delivery stops waiting while there is still time for a slow create.
func TestSlotsLeaveTimeToRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all RepositoryLimit
		key := SlotKey{"team", 1}
		for range 1 + overflowSlots {
			defer all.Acquire(t.Context(), key, 1, func() {})()
		}
		ctx, cancel := context.WithTimeout(t.Context(), InFlightWait+recordTime+200*time.Millisecond)
		defer cancel()
		began := time.Now()
		defer all.Acquire(ctx, key, 1, func() {})()
		if waited := time.Since(began); waited != 200*time.Millisecond {
			t.Errorf("it waited for %v, want 200ms", waited)
		}
	})
}

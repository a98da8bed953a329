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
	return &v1alpha1.GitEventSpec{Trigger: trigger, Repository: v1alpha1.RepositoryReference{Namespace: "team", Name: repository}}
}

// enterAs enters the lane of a delivery of that size.
func (l *Lanes) enterAs(t *testing.T, repository string, trigger v1alpha1.Trigger, size int) (leave func()) {
	t.Helper()
	return l.Enter(t.Context(), LaneOf(delivered(repository, trigger), make([]byte, size)), size, func() {})
}

// 40 pull requests of a Repository that arrive together are recorded one after the other, and
// nobody beside them waits: neither a push to it, nor a pull request of another one, nor a large
// body.
func TestDeliveriesOfARepositoryThatArriveTogetherWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all Lanes
		began := time.Now()
		ended := make(chan time.Duration, 40)
		for range 40 {
			go func() {
				defer all.enterAs(t, "app", v1alpha1.TriggerPullRequest, 1000)()
				<-time.After(10 * time.Millisecond) // what the API server takes
				ended <- time.Since(began)
			}()
		}
		synctest.Wait()
		for _, beside := range []func(){
			all.enterAs(t, "app", v1alpha1.TriggerPush, 1000),
			all.enterAs(t, "other", v1alpha1.TriggerPullRequest, 1000),
			all.enterAs(t, "app", v1alpha1.TriggerPullRequest, heavyBytes+1),
		} {
			beside()
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("whoever came beside them waited for %v", waited)
		}
		last := time.Duration(0)
		for range 40 {
			last = max(last, <-ended)
		}
		if want := 40 / pullsLane * 10 * time.Millisecond; last != want {
			t.Errorf("the last one is recorded after %v, want %v", last, want)
		}
		synctest.Wait()
		if len(all.of) != 0 || all.held != 0 {
			t.Errorf("%d lanes are remembered that nobody uses, and %d bytes", len(all.of), all.held)
		}
	})
}

// Who has waited for long goes on with few others, and who has waited for longer goes on in any
// case. Neither takes a place from those who have one.
func TestWhoHasWaitedForALaneForLongGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all Lanes
		key := Lane{"team", 1}
		enter := func() (leave func()) { return all.Enter(t.Context(), key, 1, func() {}) }
		first, began := enter(), time.Now()
		waited := make(chan time.Duration)
		leave := make(chan struct{})
		for range lateLane + 1 {
			go func() {
				defer enter()()
				waited <- time.Since(began)
				<-leave
			}()
		}
		for range lateLane {
			if after := <-waited; after != laneWait-lateWait {
				t.Errorf("one of the first went on after %v, want %v", after, laneWait-lateWait)
			}
		}
		if after := <-waited; after != laneWait {
			t.Errorf("the last one went on after %v, want %v", after, laneWait)
		}
		close(leave)
		synctest.Wait()
		if len(all.of[key].places) != 1 {
			t.Error("they gave back the place of another one")
		}
		first()
		if third := enter(); time.Since(began) != laneWait {
			t.Error("a free place was waited for")
		} else {
			third()
		}
		if len(all.of) != 0 || all.held != 0 {
			t.Errorf("a lane is remembered that nobody uses, or %d bytes", all.held)
		}
	})
}

// Those who wait hold so much and no more: who comes then goes on at once, and holds what it has.
func TestWhoWaitsForLanesHoldsLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all Lanes
		key := Lane{"team", 1}
		defer all.Enter(t.Context(), key, 1, func() {})()
		go func() { all.Enter(t.Context(), key, laneBytes, func() {})() }()
		synctest.Wait()
		began := time.Now()
		all.Enter(t.Context(), key, 1, func() { t.Error("it gave back its place") })()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it waited for %v", waited)
		}
	})
}

// A stranger's pull requests with long descriptions are not waited for by a large push.
func TestALargePushDoesNotWaitForLargePullRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all Lanes
		defer all.enterAs(t, "app", v1alpha1.TriggerPullRequest, heavyBytes+1)()
		began := time.Now()
		defer all.enterAs(t, "app", v1alpha1.TriggerPush, heavyBytes+1)()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it waited for %v", waited)
		}
	})
}

// Who has waited for every place before it still has the time that a create takes.
func TestALaneLeavesTimeToRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all Lanes
		key := Lane{"team", 1}
		for range 1 + lateLane {
			defer all.Enter(t.Context(), key, 1, func() {})()
		}
		ctx, cancel := context.WithTimeout(t.Context(), PlaceWait+recordTime+200*time.Millisecond)
		defer cancel()
		began := time.Now()
		defer all.Enter(ctx, key, 1, func() {})()
		if waited := time.Since(began); waited != 200*time.Millisecond {
			t.Errorf("it waited for %v, want 200ms", waited)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// delivered is a delivery of a Repository.
func delivered(repository string, trigger v1alpha1.Trigger) *v1alpha1.GitEventSpec {
	return &v1alpha1.GitEventSpec{Trigger: trigger, Repository: v1alpha1.RepositoryReference{Namespace: "team", Name: repository}}
}

// enterAs enters the lane of a delivery of that size.
func (l *lanes) enterAs(t *testing.T, repository string, trigger v1alpha1.Trigger, size int) (leave func()) {
	t.Helper()
	return l.enter(t.Context(), laneOf(delivered(repository, trigger), make([]byte, size)), size, func() {})
}

// 40 pull requests of a Repository that arrive together are recorded one after the other, and nobody beside them waits: neither a push
// to it, nor a pull request of another one, nor a large body.
func TestDeliveriesOfARepositoryThatArriveTogetherWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all lanes
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

// Who has waited for long goes on with few others, and who has waited for longer goes on in any case. Neither takes a place from
// those who have one.
func TestWhoHasWaitedForALaneForLongGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all lanes
		key := laneKey{"team", 1}
		enter := func() (leave func()) { return all.enter(t.Context(), key, 1, func() {}) }
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
		var all lanes
		key := laneKey{"team", 1}
		defer all.enter(t.Context(), key, 1, func() {})()
		go func() { all.enter(t.Context(), key, laneBytes, func() {})() }()
		synctest.Wait()
		began := time.Now()
		all.enter(t.Context(), key, 1, func() { t.Error("it gave back its place") })()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it waited for %v", waited)
		}
	})
}

// slowRecorder takes 300 ms for each call.
type slowRecorder struct{}

func (slowRecorder) Affords(string, bool, int) error { return nil }

func (slowRecorder) Record(ctx context.Context, _ *v1alpha1.GitEventSpec, _ []byte) (string, bool, error) {
	select {
	case <-time.After(300 * time.Millisecond):
		return "event", true, nil
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}

// While the API server is slow, more pull requests of a Repository than its namespace has places for wait for each other, and nothing
// is refused for that: neither one of them nor a push to another Repository of the namespace.
func TestNothingIsRefusedBecauseOthersWaitForALane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &Handler{Options: Options{Recorder: slowRecorder{}}}
		answers := make(chan answer)
		send := func(repository string, trigger v1alpha1.Trigger) {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), workBudget)
				defer cancel()
				whose := &pacv1alpha1.Repository{}
				whose.Namespace, whose.Name = "team", repository
				answers <- h.record(ctx, &delivery{body: make([]byte, 20_000), release: func() {}}, whose, delivered(repository, trigger))
			}()
		}
		const pulls = maxInFlight/2 + 60
		for range pulls {
			send("app", v1alpha1.TriggerPullRequest)
		}
		synctest.Wait()
		began := time.Now()
		send("other", v1alpha1.TriggerPush)
		if first := <-answers; first.outcome != outcomeRecorded || time.Since(began) != 300*time.Millisecond {
			t.Errorf("after %v the first answer is %+v", time.Since(began), first)
		}
		refused := 0
		for range pulls {
			if (<-answers).outcome != outcomeRecorded {
				refused++
			}
		}
		if refused > 0 {
			t.Errorf("%d of %d deliveries are refused", refused, pulls+1)
		}
	})
}

// brisk is a recorder that takes 20 ms for each call.
type brisk struct{ slowRecorder }

func (brisk) Record(context.Context, *v1alpha1.GitEventSpec, []byte) (string, bool, error) {
	<-time.After(20 * time.Millisecond)
	return "event", true, nil
}

// Of a burst that is too large for its lanes those that are left go on together after laneWait. They are more than maxQueued, and
// recorded in time all the same.
func TestABurstThatIsTooLargeForItsLanesIsRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &Handler{Options: Options{Recorder: brisk{}}}
		whose := &pacv1alpha1.Repository{}
		whose.Namespace, whose.Name = "team", "app"
		const burst = 1000
		answers := make(chan answer, burst)
		began := time.Now()
		for range burst {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), workBudget)
				defer cancel()
				d := &delivery{body: make([]byte, 20_000), release: func() {}}
				answers <- h.record(ctx, d, whose, delivered("app", v1alpha1.TriggerPullRequest))
			}()
		}
		refused := 0
		for range burst {
			if (<-answers).outcome != outcomeRecorded {
				refused++
			}
		}
		if took := time.Since(began); refused > 0 || took > workBudget {
			t.Errorf("%d of %d are refused, after %v", refused, burst, took)
		}
		if synctest.Wait(); h.lanes.held != 0 || h.tenants.waiting != 0 || h.tenants.there != 0 {
			t.Errorf("left are %d bytes, %d that wait and %d places", h.lanes.held, h.tenants.waiting, h.tenants.there)
		}
	})
}

// A large body that waits for a lane would keep one of the few slots for large ones meanwhile, which other tenants need: it does not wait.
func TestALargeBodyDoesNotWaitForALane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &Handler{Options: Options{Recorder: slowRecorder{}}}
		whose := &pacv1alpha1.Repository{}
		whose.Namespace, whose.Name = "team", "app"
		began := time.Now()
		freed := make(chan time.Duration, maxLargeBodies)
		for range maxLargeBodies {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), workBudget)
				defer cancel()
				d := &delivery{body: make([]byte, smallBodyBytes+1), release: func() { t.Error("it gave its slot back before it was recorded") }}
				h.record(ctx, d, whose, delivered("app", v1alpha1.TriggerPush))
				freed <- time.Since(began)
			}()
		}
		for range maxLargeBodies {
			if after := <-freed; after != 300*time.Millisecond {
				t.Errorf("a slot for large bodies was held for %v, want as long as one is recorded", after)
			}
		}
	})
}

// A stranger's pull requests with long descriptions are not waited for by a large push.
func TestALargePushDoesNotWaitForLargePullRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all lanes
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
		var all lanes
		key := laneKey{"team", 1}
		for range 1 + lateLane {
			defer all.enter(t.Context(), key, 1, func() {})()
		}
		ctx, cancel := context.WithTimeout(t.Context(), slotWait+recordTime+200*time.Millisecond)
		defer cancel()
		began := time.Now()
		defer all.enter(ctx, key, 1, func() {})()
		if waited := time.Since(began); waited != 200*time.Millisecond {
			t.Errorf("it waited for %v, want 200ms", waited)
		}
	})
}

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
				defer all.lane(t.Context(), delivered("app", v1alpha1.TriggerPullRequest), nil)()
				<-time.After(10 * time.Millisecond) // what the API server takes
				ended <- time.Since(began)
			}()
		}
		synctest.Wait()
		for _, beside := range []func(){
			all.lane(t.Context(), delivered("app", v1alpha1.TriggerPush), nil),
			all.lane(t.Context(), delivered("other", v1alpha1.TriggerPullRequest), nil),
			all.lane(t.Context(), delivered("app", v1alpha1.TriggerPullRequest), make([]byte, heavyBytes+1)),
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
		if len(all.of) != 0 {
			t.Errorf("%d lanes are remembered that nobody uses", len(all.of))
		}
	})
}

// Who has waited for long goes on with few others, and who has waited for longer goes on in any case. Neither takes a place from
// those who have one.
func TestWhoHasWaitedForALaneForLongGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all lanes
		first, began := all.enter(t.Context(), "team", 1), time.Now()
		waited := make(chan time.Duration)
		leave := make(chan struct{})
		for range lateLane + 1 {
			go func() {
				defer all.enter(t.Context(), "team", 1)()
				waited <- time.Since(began)
				<-leave
			}()
		}
		for range lateLane {
			if after := <-waited; after != laneWait/2 {
				t.Errorf("one of the first went on after %v, want %v", after, laneWait/2)
			}
		}
		if after := <-waited; after != laneWait {
			t.Errorf("the last one went on after %v, want %v", after, laneWait)
		}
		close(leave)
		synctest.Wait()
		if len(all.of["team"].places) != 1 {
			t.Error("they gave back the place of another one")
		}
		first()
		if third := all.enter(t.Context(), "team", 1); time.Since(began) != laneWait {
			t.Error("a free place was waited for")
		} else {
			third()
		}
		if len(all.of) != 0 {
			t.Error("a lane is remembered that nobody uses")
		}
	})
}

// slowRecorder records in lanes, and takes 300 ms for each call.
type slowRecorder struct{ lanes lanes }

func (*slowRecorder) Affords(string, int) error { return nil }

func (r *slowRecorder) Record(ctx context.Context, spec *v1alpha1.GitEventSpec, body []byte) (string, bool, error) {
	defer r.lanes.lane(ctx, spec, body)()
	select {
	case <-time.After(300 * time.Millisecond):
		return "event", true, nil
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}

// While the API server is slow, more pull requests of a Repository than its namespace has places for wait for each other, and nothing
// is refused for that: neither one of them nor a push to another Repository of the namespace, for which a place is left too late.
func TestNothingIsRefusedBecauseOthersWaitForALane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &Handler{Options: Options{Recorder: &slowRecorder{}}}
		answers := make(chan answer)
		send := func(repository string, trigger v1alpha1.Trigger) {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), workBudget)
				defer cancel()
				whose := &pacv1alpha1.Repository{}
				whose.Namespace, whose.Name = "team", repository
				answers <- h.record(ctx, &delivery{release: func() {}}, whose, delivered(repository, trigger))
			}()
		}
		const pulls = maxInFlight/2 + 60
		for range pulls {
			send("app", v1alpha1.TriggerPullRequest)
		}
		synctest.Wait()
		send("other", v1alpha1.TriggerPush)
		refused := 0
		for range pulls + 1 {
			if (<-answers).outcome != outcomeRecorded {
				refused++
			}
		}
		if refused > 0 {
			t.Errorf("%d of %d deliveries are refused", refused, pulls+1)
		}
	})
}

// Who has waited for every place before it still has the time that a create takes.
func TestALaneLeavesTimeToRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all lanes
		for range 1 + lateLane {
			defer all.enter(t.Context(), "team", 1)()
		}
		ctx, cancel := context.WithTimeout(t.Context(), recordTime+200*time.Millisecond)
		defer cancel()
		began := time.Now()
		defer all.enter(ctx, "team", 1)()
		if waited := time.Since(began); waited != 200*time.Millisecond {
			t.Errorf("it waited for %v, want 200ms", waited)
		}
	})
}

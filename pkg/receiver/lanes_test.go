// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// delivered is a delivery of a Repository.
func delivered(repository string, trigger v1alpha1.Trigger) *v1alpha1.GitEventSpec {
	return &v1alpha1.GitEventSpec{Trigger: trigger, Repository: v1alpha1.RepositoryReference{Namespace: "team", Name: repository}}
}

// 80 pull requests of a Repository that arrive together are recorded one after the other, and nobody beside them waits: neither a push
// to it, nor a pull request of another one, nor a large body.
func TestDeliveriesOfARepositoryThatArriveTogetherWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all lanes
		began := time.Now()
		ended := make(chan time.Duration, 80)
		for range 80 {
			go func() {
				defer all.lane(delivered("app", v1alpha1.TriggerPullRequest), nil)()
				<-time.After(50 * time.Millisecond) // what the API server takes
				ended <- time.Since(began)
			}()
		}
		synctest.Wait()
		for _, beside := range []func(){
			all.lane(delivered("app", v1alpha1.TriggerPush), nil),
			all.lane(delivered("other", v1alpha1.TriggerPullRequest), nil),
			all.lane(delivered("app", v1alpha1.TriggerPullRequest), make([]byte, heavyBytes+1)),
		} {
			beside()
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("whoever came beside them waited for %v", waited)
		}
		last := time.Duration(0)
		for range 80 {
			last = max(last, <-ended)
		}
		if want := 80 / pullsLane * 50 * time.Millisecond; last != want {
			t.Errorf("the last one is recorded after %v, want %v", last, want)
		}
		synctest.Wait()
		if len(all.of) != 0 {
			t.Errorf("%d lanes are remembered that nobody uses", len(all.of))
		}
	})
}

// Who has waited for long goes on, and takes no place from those who have one.
func TestWhoHasWaitedForALaneForLongGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all lanes
		first, began := all.enter("team", 1), time.Now()
		second := all.enter("team", 1)
		if waited := time.Since(began); waited != laneWait {
			t.Errorf("it went on after %v, want %v", waited, laneWait)
		}
		second()
		if len(all.of["team"].places) != 1 {
			t.Error("it gave back the place of another one")
		}
		first()
		if third := all.enter("team", 1); time.Since(began) != laneWait {
			t.Error("a free place was waited for")
		} else {
			third()
		}
		if len(all.of) != 0 {
			t.Error("a lane is remembered that nobody uses")
		}
	})
}

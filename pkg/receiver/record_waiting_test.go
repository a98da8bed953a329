// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
)

// delivered is a delivery of a Repository.
func delivered(repository string, trigger v1alpha1.Trigger) *v1alpha1.GitEventSpec {
	return &v1alpha1.GitEventSpec{Trigger: trigger, Repository: v1alpha1.RepositoryReference{Namespace: "team", Name: repository}}
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

// While the API server is slow, more pull requests of a Repository than its namespace has places
// for wait for each other, and nothing is refused for that: neither one of them nor a push to
// another Repository of the namespace.
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
		const pulls = fairness.MaxInFlight/2 + 60
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

// Of a burst that is too large for its lanes those that are left go on together after laneWait.
// They are more than maxQueued, and recorded in time all the same.
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
		synctest.Wait()
		if there, waiting := h.places.Open(); h.lanes.Held() != 0 || there != 0 || waiting != 0 {
			t.Errorf("left are %d bytes, %d that wait and %d places", h.lanes.Held(), waiting, there)
		}
	})
}

// A large body that waits for a lane would keep one of the few slots for large ones meanwhile,
// which other tenants need: it does not wait.
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

// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/receiver/delivery"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

// anyService accepts every delivery.
type anyService struct{ trigger v1alpha1.Trigger }

func (anyService) Claims(http.Header) bool                           { return true }
func (anyService) Peek(http.Header, []byte) (provider.Origin, error) { return provider.Origin{}, nil }
func (anyService) Verify(http.Header, []byte, []byte) error          { return nil }
func (s anyService) Decode(http.Header, []byte) (*v1alpha1.GitEventSpec, error) {
	return &v1alpha1.GitEventSpec{Trigger: s.trigger}, nil
}

// slowRecorder takes so long for each call.
type slowRecorder time.Duration

func (slowRecorder) CheckRate(string, bool, int) error { return nil }

func (r slowRecorder) Record(ctx context.Context, _ *v1alpha1.GitEventSpec, _ []byte) (string, bool, error) {
	select {
	case <-time.After(time.Duration(r)):
		return "event", true, nil
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}

// recordOne takes a delivery of that size, for a Repository of the namespace team, through the last
// step.
func recordOne(t *testing.T, h *Handler, repository string, trigger v1alpha1.Trigger, size int) *answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), workBudget)
	defer cancel()
	owner := &pacv1alpha1.Repository{}
	owner.Namespace, owner.Name = "team", repository
	claimed, _ := delivery.Claim(&provider.Provider{Webhook: anyService{trigger}}, nil, make([]byte, size))
	verified, _ := claimed.Match(secrets.Secret{})
	decoded, err := verified.Decode()
	if err != nil {
		t.Error(err)
	}
	return h.record(ctx, &owned{decoded, owner}, func() {
		if size > smallBodyBytes {
			t.Error("a large body released its slot before it was recorded")
		}
	})
}

// While the API server is slow, more pull requests of a Repository than its namespace may have in
// flight wait for each other. None of them is refused for that, nor is a push to another Repository
// of the namespace.
func TestDeliveriesThatWaitForASlotAreNotRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &Handler{Options: Options{Recorder: slowRecorder(300 * time.Millisecond)}}
		answers := make(chan *answer)
		send := func(repository string, trigger v1alpha1.Trigger) {
			go func() { answers <- recordOne(t, h, repository, trigger, 20_000) }()
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

// When a burst exceeds its recording slots, the deliveries that are left proceed together after
// 3 s. They are more than may wait for the in-flight limit, and are still recorded in time.
func TestBurstBeyondItsSlotsIsRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &Handler{Options: Options{Recorder: slowRecorder(20 * time.Millisecond)}}
		const burst = 1000
		answers := make(chan *answer, burst)
		began := time.Now()
		for range burst {
			go func() { answers <- recordOne(t, h, "app", v1alpha1.TriggerPullRequest, 20_000) }()
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
		if inFlight, waiting := h.inFlight.Count(); h.recording.Waiting() != 0 || inFlight != 0 || waiting != 0 {
			t.Errorf("left are %d bytes, %d in flight and %d waiting", h.recording.Waiting(), inFlight, waiting)
		}
	})
}

// A large body does not wait for a recording slot: meanwhile it would keep one of the few slots for
// large bodies, which other tenants need.
func TestLargeBodyDoesNotWaitForASlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &Handler{Options: Options{Recorder: slowRecorder(300 * time.Millisecond)}}
		began := time.Now()
		released := make(chan time.Duration, maxLargeBodies)
		for range maxLargeBodies {
			go func() {
				recordOne(t, h, "app", v1alpha1.TriggerPush, smallBodyBytes+1)
				released <- time.Since(began)
			}()
		}
		for range maxLargeBodies {
			if after := <-released; after != 300*time.Millisecond {
				t.Errorf("a slot for large bodies was in use for %v, want as long as one record takes", after)
			}
		}
	})
}

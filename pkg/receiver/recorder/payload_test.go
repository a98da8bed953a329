// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
)

// An attempt that wrote only the payload is repeated after more than an hour. By then the sweep has
// seen the old payload without an event, and deletes it after the event was created. So the event
// must have another payload.
func TestPayloadIsNotReusedAfterAnHour(t *testing.T) {
	e := newEnv(t)
	e.failOnce("gitevents", apierrors.NewServiceUnavailable("shutting down"), false)
	_ = e.refuse(large("k1"))
	old := e.payloads()
	if len(old) != 1 {
		t.Fatalf("%d payloads, want the failed attempt's", len(old))
	}
	e.pass(time.Hour + time.Second)
	e.record(large("k1"))
	e.deletePayload(old[0].Name)
	e.wantPayload(e.wantEvents(1)[0])
}

// Attempts within half an hour share their payload: a service that retries leaves no pile of them.
func TestPayloadIsReusedWithinHalfAnHour(t *testing.T) {
	e := newEnv(t)
	e.failOnce("gitevents", apierrors.NewServiceUnavailable("shutting down"), false)
	_ = e.refuse(large("k1"))
	e.pass(time.Second)
	e.record(large("k1"))
	if n := len(e.payloads()); n != 1 {
		t.Errorf("%d payloads, want 1", n)
	}
}

// Receivers whose clocks differ write different payloads at the same time. One event is recorded,
// and it keeps its payload whatever else is deleted.
func TestCopiesOnReceiversWhoseClocksDiffer(t *testing.T) {
	e := newEnv(t)
	var wait sync.WaitGroup
	var recorded atomic.Int32
	for i := range 50 {
		r, d := e.recorder(), large("k1")
		r.Clock = clocktesting.NewFakePassiveClock(e.clock.Now().Add(time.Duration(i%3) * 20 * time.Minute))
		wait.Go(func() {
			_, created, err := r.Record(t.Context(), d.spec, d.body)
			if err != nil {
				t.Error(err)
			}
			if created {
				recorded.Add(1)
			}
		})
	}
	wait.Wait()
	event, all := e.wantEvents(1)[0], e.payloads()
	if len(all) > 2 || recorded.Load() != 1 {
		t.Fatalf("%d payloads, recorded %d times", len(all), recorded.Load())
	}
	for _, payload := range all {
		if payload.Name != event.Spec.Payload.Name+"-0" {
			e.deletePayload(payload.Name)
		}
	}
	e.wantPayload(event)
}

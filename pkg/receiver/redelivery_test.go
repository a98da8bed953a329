// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
	"github.com/plumbline-ci/plumbline/pkg/store/tombstone"
)

// The stub of a settled event is deleted when there are too many: its tombstone says the same of a
// redelivery.
func TestRedeliveryAfterTheEventWasEvicted(t *testing.T) {
	for name, c := range map[string]struct {
		status v1alpha1.GitEventStatus
		want   int // GitEvents afterwards
	}{
		"an event with runs is recorded already": {settled(v1alpha1.DispositionRuns), 0},
		"a refused one is processed again":       {settled(v1alpha1.DispositionRefused), 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.expect(http.StatusAccepted, push("k1"))
			first := w.settle(0, c.status)
			w.evict(first)
			w.expect(http.StatusAccepted, push("k1"))
			if events := w.wantEvents(c.want); len(events) == 1 && events[0].Name != first+"-r1" {
				t.Errorf("recorded as %s", events[0].Name)
			}
			w.expect(http.StatusAccepted, push("k1"))
			w.wantEvents(c.want)
			other := push("k1")
			other.message.SHA = strings.Repeat("f", 40)
			w.expect(http.StatusServiceUnavailable, other) // another body under the same key, as with a stub
			w.clock.SetTime(w.clock.Now().Add(4 * 24 * time.Hour))
			w.expect(http.StatusAccepted, push("k1"))
			w.wantEvents(c.want + 1) // no service sends it again any more: it is another delivery
		})
	}
}

// GitLab's log has no e-mail addresses, and what it sends again is from there: the same delivery
// has another body.
func TestWhatIsSentAgainWithoutAddressesIsRecordedAlready(t *testing.T) {
	w := newEnv(t)
	first, again := push("k1"), push("k1")
	first.message.Padding, again.message.Padding = bodyMarker+" of ada@example.com", bodyMarker+" of [REDACTED]"
	w.expect(http.StatusAccepted, first)
	w.expect(http.StatusAccepted, again)
	w.wantEvents(1)
	name := w.settle(0, settled(v1alpha1.DispositionRefused))
	w.expect(http.StatusAccepted, again)
	events := w.wantEvents(2)
	if events[1].Name != name+"-r1" {
		t.Errorf("the second record is %s", events[1].Name)
	}
	w.settle(1, settled(v1alpha1.DispositionRuns))
	w.evict(name)
	w.expect(http.StatusAccepted, first)
	w.expect(http.StatusAccepted, again)
	w.wantEvents(1)
}

// That there is no tombstone must be certain.
func TestATombstoneThatCannotBeReadIsNotAbsent(t *testing.T) {
	answers := failures()
	answers["not served"] = apierrors.NewGenericServerResponse(http.StatusNotFound, "get", v1alpha1.Resource("tombstonepages"), "x", "404 page not found", 0, true)
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.fail("get", "tombstonepages", answer)
			w.expect(http.StatusServiceUnavailable, push("k1"))
			w.wantEvents(0)
		})
	}
}

// evict does what the sweep does with an event above the cap, right now: also while the fake
// answers a call.
func (w *env) evict(name string) {
	w.t.Helper()
	tracker, events := w.client.Tracker(), v1alpha1.SchemeGroupVersion.WithResource("gitevents")
	found, err := tracker.Get(events, systemNamespace, name)
	if err != nil {
		w.t.Fatal(err)
	}
	page := &v1alpha1.TombstonePage{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: tombstone.PageOf(name)}}
	tombstone.Bury(page, []tombstone.Entry{tombstone.Of(found.(*v1alpha1.GitEvent), w.clock.Now().Add(4*24*time.Hour))}, w.clock.Now()) //nolint:forcetypeassert // its type is that of the resource
	if err := tracker.Create(v1alpha1.SchemeGroupVersion.WithResource("tombstonepages"), page, systemNamespace); err != nil {
		w.t.Fatal(err)
	}
	if err := tracker.Delete(events, systemNamespace, name); err != nil {
		w.t.Fatal(err)
	}
}

// An attempt that got no further than the payload is repeated after more than an hour. The sweep
// has seen the old payload without an event by then, and deletes it after the event was created:
// the event's own payload must be another one.
func TestASweepUnderWayDoesNotTakeThePayloadOfAnAcknowledgedDelivery(t *testing.T) {
	w := newEnv(t)
	payloads := w.client.PlumblineV1alpha1().EventPayloads(systemNamespace)
	w.failOnce("gitevents", apierrors.NewServiceUnavailable("shutting down"), false)
	w.expect(http.StatusServiceUnavailable, large("k1"))
	old, err := payloads.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(old.Items) != 1 {
		t.Fatalf("%d payloads, %v; want the failed attempt's", len(old.Items), err)
	}
	w.clock.SetTime(w.clock.Now().Add(time.Hour + time.Second))
	w.expect(http.StatusAccepted, large("k1"))
	if err := payloads.Delete(t.Context(), old.Items[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := blob.Read(t.Context(), payloads, w.wantEvents(1)[0].Spec.Payload); err != nil {
		t.Errorf("the event has lost its payload: %v", err)
	}
}

// Attempts that follow each other closely share their payload: a service that retries leaves no
// heap of them.
func TestAttemptsOfTheSameHalfHourShareThePayload(t *testing.T) {
	w := newEnv(t)
	w.failOnce("gitevents", apierrors.NewServiceUnavailable("shutting down"), false)
	w.expect(http.StatusServiceUnavailable, large("k1"))
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	w.expect(http.StatusAccepted, large("k1"))
	payloads, err := w.client.PlumblineV1alpha1().EventPayloads(systemNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(payloads.Items) != 1 {
		t.Errorf("%d payloads, %v; want 1", len(payloads.Items), err)
	}
}

// Receivers whose clocks differ write different payloads at once. Each copy is answered, one event
// is recorded, and it has its payload whatever else is deleted.
func TestCopiesAcrossTheHalfHourOnReceiversWhoseClocksDiffer(t *testing.T) {
	w := newEnv(t)
	var wait sync.WaitGroup
	var created atomic.Int32
	for i := range 50 {
		recorder := w.recorder()
		recorder.Clock = clocktesting.NewFakePassiveClock(w.clock.Now().Add(time.Duration(i%3) * 20 * time.Minute))
		spec := &v1alpha1.GitEventSpec{Trigger: v1alpha1.TriggerPush, Provider: "test", Host: "git.example", DeliveryKey: "k1"}
		wait.Go(func() {
			_, first, err := recorder.Record(t.Context(), spec, large("k1").body())
			if err != nil {
				t.Error(err)
			}
			if first {
				created.Add(1)
			}
		})
	}
	wait.Wait()
	event, payloads := w.wantEvents(1)[0], w.client.PlumblineV1alpha1().EventPayloads(systemNamespace)
	all, err := payloads.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) > 2 || created.Load() != 1 {
		t.Fatalf("%d payloads, %v, %d times recorded", len(all.Items), err, created.Load())
	}
	for _, payload := range all.Items {
		if payload.Name == event.Spec.Payload.Name+"-0" {
			continue
		}
		if err := payloads.Delete(t.Context(), payload.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := blob.Read(t.Context(), payloads, event.Spec.Payload); err != nil {
		t.Errorf("the event has lost its payload: %v", err)
	}
}

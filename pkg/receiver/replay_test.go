// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// happened is a push whose body says when it was.
func happened(key string, at time.Time) delivery {
	d := push(key)
	d.message.At = at.Unix()
	return d
}

// S35: who has seen a delivery can send its body again under an id of their own, for the signature does not cover that.
func TestABodyUnderAnotherIDIsTheSameDelivery(t *testing.T) {
	w := newWorld(t)
	at := w.clock.Now()
	w.expect(http.StatusAccepted, happened("k1", at))
	replayed := w.expect(http.StatusAccepted, happened("k2", at))
	first := w.wantEvents(1)[0]
	if !strings.Contains(replayed.Body.String(), "already recorded as "+first.Name) || first.Spec.DeliveryKey != "k1" {
		t.Errorf("answered %s; recorded is %s", replayed.Body, first.Spec.DeliveryKey)
	}
	if w.counted("duplicate", "AlreadyRecorded") != 1 {
		t.Error("not counted as a duplicate")
	}
	w.settle(0, settled("Runs"))
	w.expect(http.StatusAccepted, happened("k3", at))
	w.clock.SetTime(at.Add(30 * time.Minute)) // the sweep leaves it for so long
	w.evict(first.Name)
	w.expect(http.StatusAccepted, happened("k4", at))
	w.wantEvents(0)
	w.expect(http.StatusAccepted, happened("k5", at.Add(time.Second)))
	w.wantEvents(1) // what happened a second later is another event
}

func TestABodyUnderAnotherIDIsProcessedAgainAfterAnEndWithoutRuns(t *testing.T) {
	w := newWorld(t)
	w.expect(http.StatusAccepted, happened("k1", w.clock.Now()))
	first := w.settle(0, settled("Refused"))
	w.expect(http.StatusAccepted, happened("k2", w.clock.Now()))
	if events := w.wantEvents(2); events[1].Name != first+"-r1" {
		t.Errorf("recorded as %s", events[1].Name)
	}
}

// The version before named every event by its delivery's id.
func TestARedeliveryOfWhatTheVersionBeforeRecorded(t *testing.T) {
	for name, bury := range map[string]bool{"which is there": false, "of which a tombstone is left": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			at := w.clock.Now()
			d := happened("k1", at)
			w.before(d)
			former := w.settle(0, settled("Runs"))
			if bury {
				w.clock.SetTime(at.Add(30 * time.Minute))
				w.evict(former)
			}
			there := len(w.events())
			if answer := w.expect(http.StatusAccepted, d); !strings.Contains(answer.Body.String(), "already recorded as "+former) {
				t.Errorf("answered %s, want %s", answer.Body, former)
			}
			w.wantEvents(there)
			w.expect(http.StatusAccepted, happened("k2", at.Add(time.Second)))
			w.wantEvents(there + 1)
		})
	}
}

func TestARefusedEventOfTheVersionBeforeIsProcessedAgain(t *testing.T) {
	w := newWorld(t)
	d := happened("k1", w.clock.Now())
	w.before(d)
	former := w.settle(0, settled("Refused"))
	for range 2 {
		w.expect(http.StatusAccepted, d)
		if events := w.wantEvents(2); events[1].Name != former+"-r1" {
			t.Errorf("recorded as %s", events[1].Name)
		}
	}
}

// A process of the version before that ran beside this one has ended a day after this one started.
func TestWhatTheVersionBeforeRecordedIsNotLookedForForEver(t *testing.T) {
	w := newWorld(t)
	reads := func(at time.Time) (n int) {
		w.client.ClearActions()
		w.expect(http.StatusAccepted, happened("k", at))
		for _, action := range w.client.Actions() {
			if action.Matches("get", "gitevents") || action.Matches("get", "tombstonepages") {
				n++
			}
		}
		return n
	}
	if n := reads(w.clock.Now().Add(-time.Hour)); n != 4 {
		t.Errorf("%d reads for an event of today, want 4", n)
	}
	if n := reads(w.clock.Now().Add(25 * time.Hour)); n != 2 {
		t.Errorf("%d reads for an event that happened long after this process started, want 2", n)
	}
}

// before records a delivery as the version before did: by its id.
func (w *world) before(d delivery) {
	w.t.Helper()
	spec, err := service{}.Decode(d.request().Header, d.body())
	if err != nil {
		w.t.Fatal(err)
	}
	spec.Body = nil
	if _, created, err := w.recorder().Record(w.t.Context(), spec, d.body()); err != nil || !created {
		w.t.Fatal(created, err)
	}
}

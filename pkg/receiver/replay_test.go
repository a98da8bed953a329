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

// S35: who has seen a delivery can send its body again under an id of their own, for the signature
// does not cover that.
func TestABodyUnderAnotherIDIsTheSameDelivery(t *testing.T) {
	w := newEnv(t)
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
	w := newEnv(t)
	w.expect(http.StatusAccepted, happened("k1", w.clock.Now()))
	first := w.settle(0, settled("Refused"))
	w.expect(http.StatusAccepted, happened("k2", w.clock.Now()))
	if events := w.wantEvents(2); events[1].Name != first+"-r1" {
		t.Errorf("recorded as %s", events[1].Name)
	}
}

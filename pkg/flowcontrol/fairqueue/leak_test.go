// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// The slots of a woken event that is not reconciled go to the next event. The reason does not
// matter: it was settled, another process has it, or it is unknown.
func TestNoSlotLeaks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone func(w *env, event string)
		took time.Duration
	}{
		"it is settled, or led elsewhere": {func(w *env, event string) { w.Remove(event) }, 0},
		"it does not arrive":              {func(w *env, _ string) { w.pass(ReservedFor) }, ReservedFor},
		"it comes, and its work fails": {func(w *env, event string) {
			release := w.begin(Request{Event: event, Namespace: "team", Host: "git.example"})
			leave, err := w.AcquireService(Request{Event: event, Namespace: "team", Host: "git.example"})
			if err != nil {
				w.t.Fatal(err)
			}
			leave()
			release()
			release()
			leave()
		}, 0},
		"it comes, and needs nothing": {
			func(w *env, event string) { w.begin(Request{Event: event, Namespace: "team"})() }, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, 4)
			first := w.begin(w.visit("team", "git.example", 0))
			for range 20 {
				if w.begin(w.visit("team", "git.example", 0)) != nil {
					t.Fatal("there are more slots than the limit")
				}
			}
			began := w.now
			first()
			for n := range 20 {
				if len(w.woken) != n+1 {
					t.Fatalf("%d were woken after %d were gone", len(w.woken), n)
				}
				c.gone(w, w.woken[n])
			}
			w.nothingLeft()
			if took := w.now.Sub(began); took != 20*c.took {
				t.Errorf("it took %v, want %v", took, 20*c.took)
			}
		})
	}
}

// A full queue refuses an event with a time for its retry, and stores nothing about it.
func TestFullQueueRefusesEvents(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 4)
	w.begin(w.visit("team", "git.example", 0))
	for range maxQueued {
		w.begin(w.visit("team", "git.example", 0))
	}
	known := len(w.Queue.events)
	_, err := w.AcquireWorker(w.visit("team", "git.example", 0), true)
	if f := fault.Of(err); f == nil || f.Reason != fault.ReasonBusy || f.RetryAfter != RetryUnqueued ||
		len(w.Queue.events) != known {
		t.Errorf("told %+v, %d events are known", f, len(w.Queue.events))
	}
}

// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"net/http"
	"testing"
	"time"
)

// outage lets everything fail for hours with this answer, 0 for none, until something was sent
// again in vain and that was seen, and lets nobody tell of its end.
func (w *world) outage(answer int, guids ...string) {
	w.Helper()
	w.receive = func(string) int { return answer }
	for _, guid := range guids {
		w.deliver(guid)
	}
	w.run(6 * time.Hour)
	for n := len(w.resent); n == len(w.resent); {
		w.run(time.Minute)
	}
	w.run(lookEvery + time.Minute)
	w.receive = nil
}

// test is what somebody does who presses Test, with an event that starts nothing.
func (w *world) test() {
	w.deliver("test")
	w.log[len(w.log)-1].Starts = false
}

// An outage may end without any receiver noticing it, for example of what is in front of it. Then
// the first delivery that is taken ends the waiting.
func TestADeliveryThatIsTakenEndsTheWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		answer int
		then   func(w *world)
		ends   bool
	}{
		"nothing was taken":                         {0, func(*world) {}, false},
		"one was taken":                             {0, func(w *world) { w.deliver("new") }, true},
		"one was taken, one failed since":           {0, func(w *world) { w.deliver("new"); w.missed("newer") }, false},
		"nobody answered, and now a test's event":   {0, func(w *world) { w.test() }, true},
		"it was refused, and one was taken":         {http.StatusServiceUnavailable, func(w *world) { w.deliver("new") }, true},
		"it was refused, and a test proves nothing": {http.StatusServiceUnavailable, func(w *world) { w.test() }, false},
		"it was paused, and somebody tested": {0, func(w *world) {
			w.pause(10 * time.Minute)
			w.test()
		}, true},
		"it was paused until the time was over": {0, func(w *world) { w.pause(10 * time.Minute) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.outage(c.answer, "a", "b")
			before := len(w.resent)
			c.then(w)
			w.run(lookEvery + time.Minute)
			if c.ends {
				w.wantOnce("a", "b")
			} else if len(w.resent) != before {
				t.Errorf("sent again: %v", w.resent[before:])
			}
		})
	}
}

// Where GitLab tells no times the ids count.
func TestADeliveryWithoutATimeEndsTheWaiting(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	w.outage(0, "a", "b")
	w.deliver("new")
	w.log[len(w.log)-1].At = time.Time{}
	w.run(lookEvery + time.Minute)
	w.wantOnce("a", "b")
}

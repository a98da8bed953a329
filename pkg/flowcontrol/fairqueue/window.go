// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"time"
)

const (
	// firstWindow is how many visits at once a Git service gets that nobody knows yet, and at least
	// as long as it only answers late: it may be far away.
	firstWindow = 4
	// slow is an answer that took too long: GitHub and GitLab take 0.1 to 1 s.
	slow = 2 * time.Second
	// maxWindows bounds for how many it is remembered what they bear, at some 100 bytes each.
	maxWindows = 10_000
)

// window is how many visits at once a Git service answers well: one more for each round of good
// answers, half of them after a bad one (additive increase, multiplicative decrease). An
// installation of the App has its own, and elsewhere each namespace at each host: what one of them
// causes costs no other.
type window struct {
	size   float64
	halved time.Time
	closed time.Time // until then nobody is let in
}

// turns is how many visits may be there at once now.
func (w *window) turns(now time.Time) int {
	if w.closed.After(now) {
		return 0
	}
	return int(w.size)
}

// window is that of a place.
func (t *Turns) window(p place) *window {
	w, known := t.windows[p]
	if known {
		return w
	}
	if len(t.windows) >= maxWindows {
		clear(t.windows) // those in use go on with what they know until nobody is there
	}
	w = &window{size: firstWindow}
	t.windows[p] = w
	return w
}

// Answer is how a Git service bore a call.
type Answer struct {
	// Began is when it was called.
	Began time.Time
	// Strained tells that the service failed, did not answer, or asked for fewer calls.
	Strained bool
	// Closed is for how long nothing may be called, because its limits say so; whoever visits it
	// then waits in its line.
	Closed time.Duration
}

// Learn takes note of an answer to a call of the visit.
func (t *Turns) Learn(v Visit, a Answer) {
	defer t.wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.options.Now()
	s, known := t.shares[measured(v)]
	if !known || s.window == nil {
		return // the visit is over
	}
	w := s.window
	late := now.Sub(a.Began) > slow
	switch {
	case a.Closed > 0:
		if until := now.Add(a.Closed); until.After(w.closed) {
			w.closed = until
			t.alarm(until)
		}
	case a.Began.Before(w.halved): // it tells of the service as it was called too often
	case a.Strained:
		w.size, w.halved = max(1, w.size/2), now
	case late:
		w.size, w.halved = max(min(w.size, firstWindow), w.size/2), now
	case 2*s.taken >= int(w.size): // it is used; else nobody knows whether the service would bear more
		w.size = min(w.size+1/w.size, float64(s.limit))
		t.next()
	}
}

// measured is the place that has a window.
func measured(v Visit) place {
	if v.Installation != 0 {
		return place{Installation, fmt.Sprintf("%s/%d", v.Host, v.Installation)}
	}
	return place{NamespaceHost, v.Namespace + " at " + v.Host}
}

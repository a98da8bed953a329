// SPDX-License-Identifier: Apache-2.0

package fairqueue

import "time"

const (
	// firstWindow is how many slots an unknown Git service has at first. Late answers alone do not
	// make it less: the service may be far away.
	firstWindow = 4
	// slow is an answer that took too long: GitHub and GitLab take 0.1 to 1 s.
	slow = 2 * time.Second
)

// window is how many events at once a Git service can take. It grows by one for each round of good
// answers, and is halved after a bad one (additive increase, multiplicative decrease). Each
// installation of the App has a window, and elsewhere each namespace at each host: what one of them
// causes costs no other.
type window struct {
	size   float64
	halved time.Time
	closed time.Time // until then there is no slot
}

// slots returns how many there are now.
func (w *window) slots(now time.Time) int {
	if w.closed.After(now) {
		return 0
	}
	return int(w.size)
}

// window returns the window of a key. Events that have slots, or wait for one, go on with theirs if
// it was evicted meanwhile.
func (l *limiter) window(k key) *window {
	return l.windows.GetOrCreate(k, func() *window { return &window{size: firstWindow} })
}

// measured is the key that has a window.
func measured(namespace, host string, installation int64) key {
	if installation != 0 {
		return installationAt(host, installation)
	}
	return namespaceHost(namespace, host)
}

// Answer is how a Git service answered a call.
type Answer struct {
	// Began is when it was called.
	Began time.Time
	// Strained says that the service failed, did not answer, or asked for fewer calls.
	Strained bool
	// Closed is for how long the service's limits allow no call. Events that need it then wait in
	// the queue.
	Closed time.Duration
}

// Observe adjusts the window of the event's Git service after a call.
func (q *Queue) Observe(r Request, a Answer) {
	defer q.wake()
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.options.Now()
	l, known := q.limiter.limits[measured(r.Namespace, r.Host, r.Installation)]
	if !known || l.window == nil {
		return // the event has no slot any more
	}
	w := l.window
	late := now.Sub(a.Began) > slow
	switch {
	case a.Closed > 0:
		if until := now.Add(a.Closed); until.After(w.closed) {
			w.closed = until
			q.alarm(until)
		}
	case a.Began.Before(w.halved): // it says how the service was before it was called less often
	case a.Strained:
		w.size, w.halved = max(1, w.size/2), now
	case late:
		w.size, w.halved = max(min(w.size, firstWindow), w.size/2), now
	case 2*l.used >= int(w.size): // it is used; otherwise it is unknown whether the service could take more
		w.size = min(w.size+1/w.size, float64(l.max))
		q.dispatch()
	}
}

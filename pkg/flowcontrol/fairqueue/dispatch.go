// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"slices"
	"time"
)

// dispatch wakes all events that can have slots now, and reserves the slots for ReservedFor.
func (q *Queue) dispatch() {
	for {
		f, e := q.next()
		if f == nil {
			return
		}
		q.limiter.acquire(f.limits)
		f.lastUsed = q.limiter.uses
		f.limits[0].pulls = f.key.pullsOf != ""
		e.until = q.options.Now().Add(ReservedFor)
		e.reserve(f.limits, f.key.service)
		q.dequeue(e, e.worker) // an event that has a slot of its Git service has a worker's as well
		if f.key.service {
			q.dequeue(e, e.service)
		}
		q.wakeUps = append(q.wakeUps, wakeUp{e.name, 0})
		q.alarm(e.until)
	}
}

// next returns the event to wake next and its queue, nil if no event can have slots. It reads all
// queues, which takes 50 µs for a thousand: there are as many as namespaces and Repositories that
// wait at the same time.
func (q *Queue) next() (*fifo, *event) {
	var first *fifo
	var woken *event
	now := q.options.Now()
	for _, f := range q.fifos {
		if f.limits[len(f.limits)-1].full(now) || first != nil && !f.before(first) ||
			q.limiter.firstFull(f.limits) != nil { // the widest first: it is full for many queues
			continue
		}
		if i := slices.IndexFunc(f.events, (*event).idle); i >= 0 {
			first, woken = f, f.events[i]
		}
	}
	return first, woken
}

// reserve reserves the slots that an event needs: the first limit is the worker's, the others are
// those of the Git service.
func (e *event) reserve(limits []*limit, service bool) {
	e.worker.reserved = limits
	if service {
		e.worker.reserved, e.service.reserved = limits[:1:1], limits[1:]
	}
}

// idle reports whether an event may be woken. One that a worker reconciles stays queued until that
// ends.
func (e *event) idle() bool { return !e.attended && e.worker.reserved == nil }

// reserved reports whether slots are reserved for an event that was woken and is not reconciled
// yet.
func (e *event) reserved() bool { return e.worker.reserved != nil && !e.attended }

// drop releases what is reserved for an event.
func (q *Queue) drop(e *event) {
	q.release(e.worker.reserved)
	q.release(e.service.reserved)
	e.worker.reserved, e.service.reserved = nil, nil
	q.forget(e)
}

// tick is called by an alarm. It releases reserved slots whose time is over, wakes the events that
// can have slots now, and sets the next alarm. Only the current alarm does so: one that an earlier
// alarm has replaced must not set another one.
func (q *Queue) tick(alarm uint64) {
	defer q.wake()
	q.mu.Lock()
	defer q.mu.Unlock()
	if alarm != q.alarms {
		return
	}
	now := q.options.Now()
	for _, e := range q.events {
		if e.reserved() && !now.Before(e.until) {
			q.drop(e)
		}
	}
	q.dispatch()
	q.timer = time.Time{}
	if at := q.due(now); !at.IsZero() {
		q.alarm(at)
	}
}

// due returns when the next tick has something to do: reserved slots are released, a pause ends or
// a Git service may be called again. It is zero if nothing is pending. A limit exists only while an
// event has a slot of it or waits for one.
func (q *Queue) due(now time.Time) (at time.Time) {
	earliest := func(next time.Time) {
		if next.After(now) && (at.IsZero() || next.Before(at)) {
			at = next
		}
	}
	for _, e := range q.events {
		if e.reserved() {
			earliest(e.until)
		}
	}
	for _, limit := range q.limiter.limits {
		earliest(limit.pausedUntil)
		if limit.window != nil {
			earliest(limit.window.closed)
		}
	}
	return at
}

// alarm has tick called at a time, or earlier. An alarm cannot be cancelled, so it is set at most
// ReservedFor ahead: those that were replaced are gone by then, however often that happens. A tick
// that comes early sets the next one.
func (q *Queue) alarm(at time.Time) {
	now := q.options.Now()
	if latest := now.Add(ReservedFor); at.After(latest) {
		at = latest
	}
	if !q.timer.IsZero() && !at.Before(q.timer) {
		return
	}
	q.timer = at
	q.alarms++
	current := q.alarms
	q.options.After(at.Sub(now), func() { q.tick(current) })
}

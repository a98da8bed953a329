// SPDX-License-Identifier: Apache-2.0

// Package fairqueue shares the workers fairly among Git services and namespaces. Neither a Git
// service that hangs nor a tenant whose services hang can hold all workers (B15, S6). An event that
// finds no free slot is queued, and woken when a slot is reserved for it: see docs/adr/0025.
package fairqueue

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// Retry is when a queued event is requeued although nothing has woken it. No way to lose a
	// wake-up is known, because the queue and the workqueue are in the same process; this is for
	// the unknown.
	Retry = 10 * time.Minute
	// RetryUnqueued is when an event is requeued for which the queue had no space.
	RetryUnqueued = 30 * time.Second
	// ReservedFor is how long slots are reserved for an event that was woken: longer than it waits
	// for a free worker, shorter than the 50 s for which a worker may hang.
	ReservedFor = 10 * time.Second
	// maxQueued bounds the queued events, at some 300 bytes each. It is the default limit of
	// unsettled events. At this limit, the namespace with the most queued events is evicted from
	// first.
	maxQueued = 10_000
)

// Options configure a Queue. All but After are needed.
type Options struct {
	// Workers is how many workers are shared.
	Workers int
	Now     func() time.Time
	// Wake enqueues an event after a time. The Queue calls it without holding its lock.
	Wake func(event string, after time.Duration)
	// Full is called with the name of a limit that was reached when an event needed a slot.
	Full func(limit string)
	// After calls f after a time; nil is time.AfterFunc.
	After func(d time.Duration, f func())
}

// Queue knows which events have slots and which wait for some. It is advice: losing it costs time,
// never an event. Safe for concurrent use.
type Queue struct {
	options Options

	mu       sync.Mutex
	limiter  limiter
	fifos    map[fifoKey]*fifo
	events   map[string]*event
	waiting  map[string]int // queued events, by the limit that each found reached
	queuedOf map[string]int // queued events, by namespace
	queued   int            // queued events
	wakeUps  []wakeUp       // to be done when the lock is released
	timer    time.Time      // when the current alarm calls tick; zero if there is none
	alarms   uint64         // counts the alarms that were set; the last one is the current one
}

// event is what the Queue knows of one.
type event struct {
	name            string
	worker, service *slots
	attended        bool      // a worker reconciles it
	until           time.Time // when the slots that are reserved for it are released
}

// slots are what an event has or waits for: a slot of a worker, or the slots of a Git service.
type slots struct {
	fifo     *fifo    // where the event waits for them; nil if it does not
	full     string   // the limit that it found reached then
	reserved []*limit // of which one slot each is reserved for it
}

// wakeUp is an event to wake after a time.
type wakeUp struct {
	event string
	after time.Duration
}

// New returns a Queue without events.
func New(o Options) *Queue {
	if o.After == nil {
		o.After = func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	}
	return &Queue{
		options:  o,
		limiter:  limiter{now: o.Now, workers: o.Workers, limits: map[key]*limit{}},
		fifos:    map[fifoKey]*fifo{},
		events:   map[string]*event{},
		waiting:  map[string]int{},
		queuedOf: map[string]int{},
	}
}

// AcquireWorker takes a slot of the workers for an event. If service is true, nothing can be done
// for the event without its Git service: then it reserves a slot there as well, for AcquireService.
//
// It does not wait. If there is no free slot, it queues the event and returns a Throttled fault
// with fault.ReasonBusy; nothing needs to be done for the event until it is woken. Otherwise,
// release releases the slots, once.
func (q *Queue) AcquireWorker(r Request, service bool) (release func(), err error) {
	defer q.wake()
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.event(r.Event)
	if e.attended { // a workqueue gives a key to one worker at a time
		return nil, fault.Throttledf(fault.ReasonBusy, time.Second, "another worker reconciles event %s", r.Event)
	}
	if e.worker.reserved == nil {
		if err := q.begin(e, r, service); err != nil {
			return nil, err
		}
	}
	used := e.worker.reserved
	e.worker.reserved, e.attended, e.until = nil, true, time.Time{}
	return q.once(func() {
		q.release(used)
		q.release(e.service.reserved)
		e.service.reserved, e.attended = nil, false
		q.forget(e)
	}), nil
}

func (q *Queue) begin(e *event, r Request, service bool) error {
	key := fifoKey{namespace: r.Namespace, pullsOf: r.PullsOf}
	if service {
		key = serviceKey(r)
		key.renews, key.fresh = false, true
	}
	limits, err := q.acquire(e, key, 0)
	if err != nil {
		return err
	}
	q.dequeue(e, e.worker) // e.g. after a plan was found that the cache did not have
	e.reserve(limits, service)
	return nil
}

// AcquireService takes a slot of the event's Git service in addition to the worker's: the one that
// is reserved, if there is one. It queues the event as AcquireWorker does.
func (q *Queue) AcquireService(r Request) (release func(), err error) {
	defer q.wake()
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.event(r.Event)
	used := e.service.reserved
	if used == nil {
		if used, err = q.acquire(e, serviceKey(r), 1); err != nil {
			return nil, err
		}
	}
	e.service.reserved = nil
	return q.once(func() {
		q.release(used)
		q.forget(e)
	}), nil
}

// Acquire is AcquireService for an event.
func (q *Queue) Acquire(_ context.Context, event *v1alpha1.GitEvent) (release func(), err error) {
	return q.AcquireService(RequestOf(event, q.options.Now()))
}

// Remove is called for an event that needs no slots any more, because it is settled or another
// process leads it.
func (q *Queue) Remove(name string) {
	defer q.wake()
	q.mu.Lock()
	defer q.mu.Unlock()
	e, known := q.events[name]
	if !known {
		return
	}
	q.dequeue(e, e.worker)
	q.dequeue(e, e.service)
	if !e.attended {
		q.drop(e)
	}
	q.dispatch()
}

// once returns a function that calls release and wakes others. It does nothing when it is called
// again.
func (q *Queue) once(release func()) func() {
	released := false
	return func() {
		defer q.wake()
		q.mu.Lock()
		defer q.mu.Unlock()
		if released {
			return
		}
		released = true
		release()
		q.dispatch()
	}
}

// acquire takes a slot of each limit of the key, without the first skip limits, or queues the
// event.
func (q *Queue) acquire(e *event, key fifoKey, skip int) ([]*limit, error) {
	waits := e.slots(key.service)
	if key.renews && waits.fifo != nil && !waits.fifo.key.renews {
		q.dequeue(e, waits) // it changes over to the queue of the renewals
	}
	if waits.fifo == nil {
		all := q.limiter.of(key)
		full := q.limiter.firstFull(all[skip:])
		if full == nil {
			q.limiter.acquire(all[skip:])
			q.limiter.tidy(all)
			return all[skip:], nil
		}
		q.options.Full(full.name)
		if !q.enqueue(e, key, all, full.name) {
			q.limiter.tidy(all)
			q.forget(e)
			return nil, fault.Throttledf(fault.ReasonBusy, RetryUnqueued, "waiting for other events: the queue is full")
		}
	}
	return nil, fault.Throttledf(fault.ReasonBusy, Retry, "waiting in the queue for other events")
}

// release releases a slot of each limit.
func (q *Queue) release(limits []*limit) {
	if paused := q.limiter.release(limits); !paused.IsZero() {
		q.alarm(paused)
	}
}

func (q *Queue) event(name string) *event {
	e, known := q.events[name]
	if !known {
		e = &event{name: name, worker: &slots{}, service: &slots{}}
		q.events[name] = e
	}
	return e
}

// slots are those of the event's Git service, or of its worker.
func (e *event) slots(service bool) *slots {
	if service {
		return e.service
	}
	return e.worker
}

// forget forgets an event that has no slots and waits for none.
func (q *Queue) forget(e *event) {
	if !e.attended && e.worker.unused() && e.service.unused() && q.events[e.name] == e {
		delete(q.events, e.name)
	}
}

func (s *slots) unused() bool { return s.fifo == nil && s.reserved == nil }

// wake does the wake-ups, without the lock.
func (q *Queue) wake() {
	q.mu.Lock()
	wakeUps := q.wakeUps
	q.wakeUps = nil
	q.mu.Unlock()
	for _, w := range wakeUps {
		q.options.Wake(w.event, w.after)
	}
}

// Waiting returns how many events are queued, by the name of the limit that each found reached.
func (q *Queue) Waiting() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.waiting)
}

// InUse returns how many slots of each limit are in use, e.g. of "host github.com". A limit of
// which none is in use is left out.
func (q *Queue) InUse() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limiter.inUse()
}

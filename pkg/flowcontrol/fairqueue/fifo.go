// SPDX-License-Identifier: Apache-2.0

package fairqueue

import "slices"

// fifoKey is what the events of one queue have in common. Events that wait for a worker alone have
// a namespace only.
type fifoKey struct {
	namespace, host string
	installation    int64
	pullsOf         string // the Repository whose pull requests they are
	service         bool   // they wait for a slot of their Git service as well
	fresh           bool   // nothing is done for them yet; these and the others alternate
	renews          bool   // they wait to renew a token
}

func serviceKey(r Request) fifoKey {
	return fifoKey{
		namespace:    r.Namespace,
		host:         r.Host,
		installation: r.Installation,
		pullsOf:      r.PullsOf,
		service:      true,
		renews:       r.Renews,
	}
}

// fifo is the events that wait for slots of the same limits, in the order in which they came.
type fifo struct {
	key      fifoKey
	limits   []*limit
	events   []*event
	lastUsed uint64 // when one of them was last woken, or the first one came, in uses of the limiter
}

// enqueue appends an event to a queue. It returns false if the Queue is full. The parameter full is
// the limit that the event found reached.
func (q *Queue) enqueue(e *event, key fifoKey, limits []*limit, full string) bool {
	if q.queued >= maxQueued && !q.evict(key.namespace, limits) {
		return false
	}
	f, known := q.fifos[key]
	if !known {
		q.limiter.uses++ // of queues that nothing was woken from, the first is the oldest
		f = &fifo{key: key, limits: limits, lastUsed: q.limiter.uses}
		q.fifos[key] = f
		for _, limit := range limits {
			limit.fifos++
		}
	}
	f.events = append(f.events, e)
	waits := e.slots(key.service)
	waits.fifo, waits.full = f, full
	q.waiting[full]++
	q.queuedOf[key.namespace]++
	q.queued++
	return true
}

// evict removes an event of the namespace with the most queued events, for one that has at least
// two fewer. It returns false if there is none. It removes the last event of the namespace's
// longest queue, which is requeued after RetryUnqueued. Limits that the new event needs are not
// deleted meanwhile.
func (q *Queue) evict(namespace string, needed []*limit) bool {
	most := ""
	for other, n := range q.queuedOf {
		if most == "" || n > q.queuedOf[most] {
			most = other
		}
	}
	if q.queuedOf[most] <= q.queuedOf[namespace]+1 {
		return false
	}
	longest := q.longest(most)
	e := longest.events[len(longest.events)-1]
	for _, limit := range needed {
		limit.fifos++
	}
	q.dequeue(e, e.slots(longest.key.service))
	for _, limit := range needed {
		limit.fifos--
	}
	q.forget(e)
	q.wakeUps = append(q.wakeUps, wakeUp{e.name, RetryUnqueued})
	return true
}

// longest returns the longest queue of a namespace. It returns one of renewals only if there is no
// other.
func (q *Queue) longest(namespace string) *fifo {
	var longest *fifo
	for _, f := range q.fifos {
		switch {
		case f.key.namespace != namespace:
		case longest == nil,
			!f.key.renews && longest.key.renews,
			f.key.renews == longest.key.renews && len(f.events) > len(longest.events):
			longest = f
		}
	}
	return longest
}

// dequeue removes an event from the queue in which it waits for slots, if it does.
func (q *Queue) dequeue(e *event, waits *slots) {
	f := waits.fifo
	if f == nil {
		return
	}
	if i := slices.Index(f.events, e); i >= 0 {
		f.events = slices.Delete(f.events, i, i+1)
	}
	waits.fifo = nil
	q.queued--
	decrement(q.queuedOf, f.key.namespace)
	decrement(q.waiting, waits.full)
	if len(f.events) == 0 {
		delete(q.fifos, f.key)
		for _, limit := range f.limits {
			limit.fifos--
		}
		q.limiter.tidy(f.limits)
	}
}

func decrement(counts map[string]int, key string) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

// before reports whether a queue is served before another one.
//
// First comes the installation with the fewest slots in use, then the one that was served the
// longest ago. Within an installation, renewals come first, then the namespace with the fewest
// slots in use there. Within a namespace, pull requests and other events alternate, however many
// Repositories have pull requests.
func (f *fifo) before(other *fifo) bool {
	if f.key.service && other.key.service {
		if first, decided := f.limits[installationOf].before(other.limits[installationOf]); decided {
			return first
		}
		if f.key.renews != other.key.renews {
			return f.key.renews
		}
		if first, decided := f.limits[namespaceHostOf].before(other.limits[namespaceHostOf]); decided {
			return first
		}
	}
	if pulls := f.key.pullsOf != ""; f.limits[0] == other.limits[0] && pulls != (other.key.pullsOf != "") {
		return pulls != f.limits[0].pulls
	}
	return f.lastUsed < other.lastUsed
}

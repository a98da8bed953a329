// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"time"
)

const (
	// maxQueued bounds the queued events, at some 100 bytes each.
	maxQueued = 10_000
	// reservedFor is how long memory is reserved for an event that was woken and is not reconciled.
	// A new event may have to wait longer for a slot of its Git service
	// (pkg/flowcontrol/fairqueue), and is then queued again. Reserved for longer, the memory would
	// be lost to the others while that service hangs.
	reservedFor = time.Minute
	// step is what a large request is rounded up to: an event that needs a little more at each
	// reconcile is refused a few times, not a hundred times.
	step = 16 << 20
)

// request is what an event needs altogether.
type request struct {
	event, owner string
	need         int
}

func (r request) little() bool { return r.need <= small }

// queue is the requests of the events that were refused. Owners are served in turn: when a request
// is served, its owner's other requests of the same kind, much or little, go behind those of all
// other owners. So no event waits for a thousand events of one owner. Requests of one owner are
// served in the order in which they came.
type queue []request

// join appends a request. That of an event that is queued already stays where it is and grows to
// the larger of both: one reconcile needs several things at once.
func (q *queue) join(w request) {
	if !w.little() {
		w.need = min(MaxEvent, (w.need+step-1)/step*step)
	}
	if i := q.index(w.event); i >= 0 {
		(*q)[i].need = max((*q)[i].need, w.need)
		return
	}
	if len(*q) < maxQueued {
		*q = append(*q, w)
	}
}

func (q *queue) leave(event string) {
	*q = slices.DeleteFunc(*q, func(w request) bool { return w.event == event })
}

func (q queue) has(event string) bool { return q.index(event) >= 0 }

func (q queue) index(event string) int {
	return slices.IndexFunc(q, func(w request) bool { return w.event == event })
}

// next removes and returns the first request for which there is enough memory.
func (q *queue) next(r *Budget) (request, bool) {
	var before ahead
	for i, w := range *q {
		if !r.fits(w, 0, before) {
			before.add(w, r.owned)
			continue
		}
		rest := slices.Delete(*q, i, i+1)
		slices.SortStableFunc(rest, func(a, b request) int { return served(a, w) - served(b, w) })
		*q = rest
		return w, true
	}
	return request{}, false
}

// served returns 1 for a request that goes behind others when one of its owner is served.
func served(w, one request) int {
	if w.owner == one.owner && w.little() == one.little() {
		return 1
	}
	return 0
}

// ahead describes the requests that are queued before another one.
type ahead struct {
	// much is what the first large request needs that waits for events of other owners.
	much int
	// little says that a small request waits for events of other owners.
	little bool
	// owners are those with a large request.
	owners map[string]bool
}

// ahead describes all queued requests.
func (q queue) ahead(owned map[string]int) (all ahead) {
	for _, w := range q {
		all.add(w, owned)
	}
	return all
}

func (a *ahead) add(w request, owned map[string]int) {
	waitsForOthers := w.need <= MaxEvent-owned[w.owner]
	if w.little() {
		a.little = a.little || waitsForOthers
		return
	}
	if a.much == 0 && waitsForOthers && !a.owners[w.owner] {
		a.much = w.need
	}
	if a.owners[w.owner] {
		return
	}
	if a.owners == nil {
		a.owners = map[string]bool{}
	}
	a.owners[w.owner] = true
}

// blocks reports whether a large request of an owner has to wait for the requests before it.
func (a *ahead) blocks(owner string) bool { return a.much > 0 || a.owners[owner] }

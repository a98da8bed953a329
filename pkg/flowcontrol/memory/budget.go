// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"
	"time"
)

const (
	// Shared is how many bytes all events that are reconciled at once may have: a quarter of the
	// container's limit.
	Shared = 256 << 20
	// MaxPart is the most that is counted for one part of an event: its definitions, its payload or
	// its plan. How much is read of each is limited elsewhere.
	MaxPart = 64 << 20
	// MaxEvent is the most that is counted for one event, and for all events of one owner: a fetch
	// of one owner may hang while its memory stays reserved (S6). An event that is alone is never
	// refused.
	MaxEvent = Shared / 2
	// small is the most that nearly every event needs. An event that needs no more can use
	// forSmall, which others cannot: it never waits for them.
	small    = 8 << 20
	forSmall = 64 << 20
)

// Budget is the memory that several reconciles share. An event that is refused is queued: when
// there is enough memory, the Budget reserves it for the event and wakes the event. Safe for
// concurrent use; losing it costs nothing but memory and time.
type Budget struct {
	now  func() time.Time
	full func()
	wake func(event string, after time.Duration)

	mu sync.Mutex
	// left is what is neither in use nor reserved. little is what events that need little use or
	// have reserved.
	left, little int
	owned        map[string]int
	queue        queue
	reserved     map[string]reservation
}

// reservation is what is reserved for an event that has waited.
type reservation struct {
	request

	until time.Time
	used  bool // the event is being reconciled and has used some of it
}

// NewBudget returns a budget of Shared bytes. It calls full whenever it refuses an event, and wake
// with no delay as soon as there is enough memory for the event.
func NewBudget(now func() time.Time, full func(), wake func(event string, after time.Duration)) *Budget {
	return &Budget{
		now:      now,
		full:     full,
		wake:     wake,
		left:     Shared,
		owned:    map[string]int{},
		reserved: map[string]reservation{},
	}
}

// Reserve takes more bytes for an event that has so many of them already. Its owner is, e.g., a
// namespace. It does not wait. If there is not enough memory, or not for that owner, or other
// events are queued for it, it takes nothing, queues the event and returns false. Release releases
// what was taken.
func (b *Budget) Reserve(event, owner string, more, held int) (taken bool) {
	b.change(func() {
		taken = b.reserve(event, owner, more, held)
		if !taken {
			b.full()
			b.queue.join(request{event, owner, held + more})
		}
	})
	return taken
}

func (b *Budget) reserve(event, owner string, more, held int) bool {
	p := b.reserved[event]
	b.drop(event)
	if more > p.need && !b.fits(request{event, owner, more}, held, b.queue.ahead(b.owned)) {
		return false
	}
	if held+more > small && held <= small {
		b.little -= held // from now on it needs much
	}
	b.count(request{event, owner, more}, 1, held+more <= small)
	if p.need > more {
		p.need, p.used = p.need-more, true
		b.hold(p)
	}
	return true
}

// fits reports whether there is enough memory for a request, besides the requests that are queued
// before it. An event that has memory already goes on, unless from now on it needs much.
func (b *Budget) fits(w request, held int, before ahead) bool {
	switch {
	case w.need > MaxEvent-b.owned[w.owner]:
		return false
	case held+w.need > small:
		return (held > small || !before.blocks(w.owner)) && w.need <= b.left-max(0, forSmall-b.little)
	case held == 0 && before.little:
		return false
	}
	return w.need <= b.left-before.much || w.need <= min(b.left, forSmall-b.little)
}

// Queued reports whether an event is queued. Nothing needs to be done for it until it is woken.
func (b *Budget) Queued(event string) (waits bool) {
	b.change(func() { waits = b.queue.has(event) })
	return waits
}

// Release releases all that an event has taken, and wakes the events that are next. What is
// reserved for the event stays reserved for its next reconcile, unless this one has used some of
// it.
func (b *Budget) Release(event, owner string, bytes int) {
	if bytes == 0 {
		return
	}
	b.change(func() {
		b.count(request{event, owner, bytes}, -1, bytes <= small)
		if b.reserved[event].used {
			b.drop(event)
		}
	})
}

// Remove forgets an event that is settled, or that another process leads.
func (b *Budget) Remove(event string) {
	b.change(func() {
		b.queue.leave(event)
		b.drop(event)
	})
}

// change calls do, and then wakes the events for which there is enough memory.
func (b *Budget) change(do func()) {
	for _, event := range b.changed(do) {
		b.wake(event, 0)
	}
}

func (b *Budget) changed(do func()) (woken []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, left, little, waiting := b.now(), b.left, b.little, len(b.queue)
	for event, p := range b.reserved {
		if now.After(p.until) && !p.used {
			b.drop(event)
		}
	}
	do()
	if b.left <= left && b.little >= little && len(b.queue) >= waiting {
		return nil // there is still not enough for the queued events
	}
	for {
		w, found := b.queue.next(b)
		if !found {
			return woken
		}
		b.hold(reservation{request: w, until: now.Add(reservedFor)})
		woken = append(woken, w.event)
	}
}

// count counts what is taken (1) or released (-1).
func (b *Budget) count(w request, sign int, little bool) {
	b.left -= sign * w.need
	if little {
		b.little += sign * w.need
	}
	if b.owned[w.owner] += sign * w.need; b.owned[w.owner] <= 0 {
		delete(b.owned, w.owner)
	}
}

func (b *Budget) hold(p reservation) {
	b.reserved[p.event] = p
	b.count(p.request, 1, p.little())
}

func (b *Budget) drop(event string) {
	if p, found := b.reserved[event]; found {
		b.count(p.request, -1, p.little())
		delete(b.reserved, event)
	}
}

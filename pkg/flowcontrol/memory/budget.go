// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"
	"time"
)

const (
	// Shared is what all events that are worked on at once may hold, in bytes: a quarter of the
	// container's limit.
	Shared = 256 << 20
	// MaxHeld is the most that one event is counted for one thing: its definitions, its payload or
	// its plan. What is read of each has budgets.
	MaxHeld = 64 << 20
	// MaxEvent is the most that one event is counted for altogether, and all events of one owner:
	// what one fetches may hang, and it keeps its part meanwhile (S6). Alone an event always finds
	// room.
	MaxEvent = Shared / 2
	// small is what nearly every event takes at most, and forSmall what is kept for those: whoever
	// needs little never waits for those who need much.
	small    = 8 << 20
	forSmall = 64 << 20
)

// Room is the memory that several attempts share. Whoever finds none stands in a line: when its
// turn comes, what it needs is kept for it, and it is told. Safe for concurrent use; losing it
// costs nothing but memory and time.
type Room struct {
	now  func() time.Time
	full func()
	wake func(event string, after time.Duration)

	mu sync.Mutex
	// left is what nobody holds and what is kept for nobody, little what is held by those who need
	// little or is kept for them.
	left, little int
	owned        map[string]int
	line         line
	kept         map[string]place
}

// place is what is kept for an event that has waited.
type place struct {
	wish

	until time.Time
	used  bool // the event has come, and takes of it
}

// NewRoom returns a room of Shared bytes. It calls full whenever somebody finds no room, and wake,
// after no time, for whoever did as soon as there is.
func NewRoom(now func() time.Time, full func(), wake func(event string, after time.Duration)) *Room {
	return &Room{now: now, full: full, wake: wake, left: Shared, owned: map[string]int{}, kept: map[string]place{}}
}

// Take takes more of the room for an event that holds so much of it already. Its owner is, e.g., a
// namespace. It never waits: when there is not as much left, or not for that owner, or others stand
// in line for it, it returns false and takes nothing, and the event stands in line. Give gives back
// what was taken.
func (r *Room) Take(event, owner string, more, held int) (taken bool) {
	r.change(func() {
		taken = r.take(event, owner, more, held)
		if !taken {
			r.full()
			r.line.join(wish{event, owner, held + more})
		}
	})
	return taken
}

func (r *Room) take(event, owner string, more, held int) bool {
	p := r.kept[event]
	r.drop(event)
	if more > p.need && !r.fits(wish{event, owner, more}, held, r.line.ahead(r.owned)) {
		return false
	}
	if held+more > small && held <= small {
		r.little -= held // it needs much from now on
	}
	r.hold(wish{event, owner, more}, 1, held+more <= small)
	if p.need > more {
		p.need, p.used = p.need-more, true
		r.keep(p)
	}
	return true
}

// fits reports whether an event that holds so much finds what it wishes beside those who stand in
// line before it. One that was let in goes on: who begins stands in line, and who needs much from
// now on.
func (r *Room) fits(w wish, held int, before ahead) bool {
	switch {
	case w.need > MaxEvent-r.owned[w.owner]:
		return false
	case held+w.need > small:
		return (held > small || !before.blocks(w.owner)) && w.need <= r.left-max(0, forSmall-r.little)
	case held == 0 && before.little:
		return false
	}
	return w.need <= r.left-before.much || w.need <= min(r.left, forSmall-r.little)
}

// Waits reports whether an event stands in line. It keeps its place, and is woken: until then
// nothing needs to be done for it.
func (r *Room) Waits(event string) (waits bool) {
	r.change(func() { waits = r.line.has(event) })
	return waits
}

// Give gives all that an event has taken back, and wakes those whose turn it is. What is kept for
// the event is kept for its next attempt, unless this one has taken of it.
func (r *Room) Give(event, owner string, bytes int) {
	if bytes == 0 {
		return
	}
	r.change(func() {
		r.hold(wish{event, owner, bytes}, -1, bytes <= small)
		if r.kept[event].used {
			r.drop(event)
		}
	})
}

// Leave forgets an event that needs nothing any more, or not of this process.
func (r *Room) Leave(event string) {
	r.change(func() {
		r.line.leave(event)
		r.drop(event)
	})
}

// change does something, and then wakes those for whom there is room.
func (r *Room) change(do func()) {
	for _, event := range r.changed(do) {
		r.wake(event, 0)
	}
}

func (r *Room) changed(do func()) (woken []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, left, little, waiting := r.now(), r.left, r.little, len(r.line)
	for event, p := range r.kept {
		if now.After(p.until) && !p.used {
			r.drop(event)
		}
	}
	do()
	if r.left <= left && r.little >= little && len(r.line) >= waiting {
		return nil // whoever found no room before finds none now
	}
	for {
		w, found := r.line.next(r)
		if !found {
			return woken
		}
		r.keep(place{wish: w, until: now.Add(patience)})
		woken = append(woken, w.event)
	}
}

// hold counts what is taken (1), or given back (-1).
func (r *Room) hold(w wish, sign int, little bool) {
	r.left -= sign * w.need
	if little {
		r.little += sign * w.need
	}
	if r.owned[w.owner] += sign * w.need; r.owned[w.owner] <= 0 {
		delete(r.owned, w.owner)
	}
}

func (r *Room) keep(p place) {
	r.kept[p.event] = p
	r.hold(p.wish, 1, p.little())
}

func (r *Room) drop(event string) {
	if p, found := r.kept[event]; found {
		r.hold(p.wish, -1, p.little())
		delete(r.kept, event)
	}
}

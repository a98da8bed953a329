// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"sync"
	"time"
)

const (
	// Shared is what all events that are worked on at once may hold, in bytes: a quarter of the container's limit.
	Shared = 256 << 20
	// MaxHeld is the most that one event is counted for one thing: its definitions, its payload or its plan. What is read of each
	// has budgets.
	MaxHeld = 64 << 20
	// MaxEvent is the most that one event is counted for altogether, and all events of one owner: what one fetches may hang, and
	// it keeps its part meanwhile (S6). Alone an event always finds room.
	MaxEvent = Shared / 2
	// small is what nearly every event takes at most, and forSmall what is kept for those: whoever needs little never waits
	// for those who need much.
	small    = 8 << 20
	forSmall = 64 << 20
)

// maxWaiting bounds for how many it is remembered that they found no room, at some 100 bytes each.
const maxWaiting = 10_000

// Room is the memory that several attempts share. Whoever finds none is told when there may be some. Safe for concurrent use;
// losing it costs nothing but memory and time.
type Room struct {
	mu      sync.Mutex
	left    int
	owned   map[string]int
	waiting []wish
	full    func()
	wake    func(event string, after time.Duration)
}

// wish is what an event found no room for.
type wish struct {
	event, owner string
	more, held   int
}

// NewRoom returns a room of Shared bytes. It calls full whenever somebody finds no room, and wake, after no time, for whoever did
// as soon as there is.
func NewRoom(full func(), wake func(event string, after time.Duration)) *Room {
	return &Room{left: Shared, owned: map[string]int{}, full: full, wake: wake}
}

// Take takes more of the room for an event that holds so much of it already. Its owner is, e.g., a namespace. It never waits: it
// returns false when there is not as much left, or not for that owner, and takes nothing then. Give gives back what was taken.
func (r *Room) Take(event, owner string, more, held int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = slices.DeleteFunc(r.waiting, func(w wish) bool { return w.event == event })
	w := wish{event, owner, more, held}
	if !r.fits(w, 0, 0) {
		r.full()
		if len(r.waiting) < maxWaiting {
			r.waiting = append(r.waiting, w)
		}
		return false
	}
	r.left -= more
	r.owned[owner] += more
	return true
}

// Waits tells whether an event that has found no room would find none now either. It keeps its place among those that wait, and is
// woken: until then nothing needs to be done for it.
func (r *Room) Waits(event string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.waiting, func(w wish) bool { return w.event == event })
	if i < 0 {
		return false
	}
	w := r.waiting[i]
	return !r.fits(wish{w.event, w.owner, w.held + w.more, 0}, 0, 0)
}

// fits tells whether there is room beside what is promised to others, and to others of the same owner.
func (r *Room) fits(w wish, promised, toOwner int) bool {
	left := r.left - promised
	if w.held+w.more > small {
		left -= forSmall
	}
	return w.more <= min(left, MaxEvent-r.owned[w.owner]-toOwner)
}

// Give gives so many bytes of an owner's back, and wakes those that have waited the longest of whom there is room for now.
func (r *Room) Give(owner string, bytes int) {
	if bytes == 0 {
		return
	}
	for _, event := range r.give(owner, bytes) {
		r.wake(event, 0)
	}
}

func (r *Room) give(owner string, bytes int) (woken []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += bytes
	if r.owned[owner] -= bytes; r.owned[owner] <= 0 {
		delete(r.owned, owner)
	}
	promised, owners := 0, map[string]int{}
	r.waiting = slices.DeleteFunc(r.waiting, func(w wish) bool {
		need := w.held + w.more // it begins anew
		if !r.fits(wish{w.event, w.owner, need, 0}, promised, owners[w.owner]) {
			return false
		}
		promised, owners[w.owner], woken = promised+need, owners[w.owner]+need, append(woken, w.event)
		return true
	})
	return woken
}

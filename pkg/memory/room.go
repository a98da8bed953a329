// SPDX-License-Identifier: Apache-2.0

package memory

import "sync"

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

// Room is the memory that several attempts share. Safe for concurrent use; losing it costs nothing but memory.
type Room struct {
	mu    sync.Mutex
	left  int
	owned map[string]int
	full  func()
}

// NewRoom returns a room of Shared bytes. It calls full whenever somebody finds no room.
func NewRoom(full func()) *Room { return &Room{left: Shared, owned: map[string]int{}, full: full} }

// Take takes more of the room for an event that holds so much of it already. Its owner is, e.g., a namespace. It never waits: it
// returns false when there is not as much left, or not for that owner, and takes nothing then. Give gives back what was taken.
func (r *Room) Take(owner string, more, held int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.left
	if held+more > small {
		left -= forSmall
	}
	if more > min(left, MaxEvent-r.owned[owner]) {
		r.full()
		return false
	}
	r.left -= more
	r.owned[owner] += more
	return true
}

// Give gives so many bytes of an owner's back.
func (r *Room) Give(owner string, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += bytes
	if r.owned[owner] -= bytes; r.owned[owner] <= 0 {
		delete(r.owned, owner)
	}
}

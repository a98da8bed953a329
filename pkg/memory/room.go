// SPDX-License-Identifier: Apache-2.0

package memory

import "sync"

const (
	// Shared is what all events that are worked on at once may hold, in bytes: a quarter of the container's limit.
	Shared = 256 << 20
	// MaxHeld is the most that one event is counted for one thing: its definitions, its payload or its plan. What is read of each
	// has budgets.
	MaxHeld = 64 << 20
	// MaxEvent is the most that one event is counted for altogether: alone it always finds room.
	MaxEvent = 3 * MaxHeld
	// small is what nearly every event takes at most, and forSmall what is kept for those: whoever needs little never waits
	// for those who need much.
	small    = 8 << 20
	forSmall = Shared - MaxEvent
)

// Room is the memory that several attempts share. Safe for concurrent use; losing it costs nothing but memory.
type Room struct {
	mu   sync.Mutex
	left int
	full func()
}

// NewRoom returns a room of Shared bytes. It calls full whenever somebody finds no room.
func NewRoom(full func()) *Room { return &Room{left: Shared, full: full} }

// Take takes more of the room for an event that holds so much of it already. It never waits: it returns false when there is not
// as much left, and takes nothing then. Give gives back what an event has taken.
func (r *Room) Take(more, held int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.left
	if held+more > small {
		left -= forSmall
	}
	if more > left {
		r.full()
		return false
	}
	r.left -= more
	return true
}

// Give gives so many bytes back.
func (r *Room) Give(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += bytes
}

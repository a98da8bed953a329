// SPDX-License-Identifier: Apache-2.0

package memory

import "sync"

// Room is the memory that several attempts share. One owner gets half of it at most: what it fetches may hang, and it keeps its
// part meanwhile (S6). Safe for concurrent use; losing it costs nothing but memory.
type Room struct {
	mu    sync.Mutex
	left  int
	share int
	owned map[string]int
}

// NewRoom returns a room of so many bytes.
func NewRoom(bytes int) *Room { return &Room{left: bytes, share: bytes / 2, owned: map[string]int{}} }

// Take takes a part of the room for an owner, e.g. a namespace. It never waits: free is false when there is not as much left, or
// not for that owner, and release is nil then. Otherwise release gives it back and must be called once.
func (r *Room) Take(owner string, bytes int) (release func(), free bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes > r.left || r.owned[owner]+bytes > r.share {
		return nil, false
	}
	r.left -= bytes
	r.owned[owner] += bytes
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.left += bytes
		if r.owned[owner] -= bytes; r.owned[owner] <= 0 {
			delete(r.owned, owner)
		}
	}, true
}

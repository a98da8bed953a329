// SPDX-License-Identifier: Apache-2.0

package memory

import "sync"

// Room is the memory that several attempts share. Safe for concurrent use; losing it costs nothing but memory.
type Room struct {
	mu   sync.Mutex
	left int
}

// NewRoom returns a room of so many bytes.
func NewRoom(bytes int) *Room { return &Room{left: bytes} }

// Take takes a part of the room. It never waits: free is false when there is not as much left, and release is nil then. Otherwise
// release gives it back and must be called once.
func (r *Room) Take(bytes int) (release func(), free bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes > r.left {
		return nil, false
	}
	r.left -= bytes
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.left += bytes
	}, true
}

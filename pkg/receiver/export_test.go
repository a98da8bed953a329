// SPDX-License-Identifier: Apache-2.0

package receiver

import "time"

// Hasten makes a handler answer strangers after a time that a test can wait for often.
func (h *Handler) Hasten(late time.Duration) *Handler {
	h.late = late
	return h
}

// Bound makes the bounds of a server that does not serve yet so small that a test can meet them.
func (s *Server) Bound(total, unverified, bytes int) {
	s.connections.maxTotal, s.connections.maxUnverified, s.connections.maxBytes, s.connections.patience = total, unverified, bytes, 0
}

// Large is how many large bodies arrive.
func (s *Server) Large() int {
	s.connections.mu.Lock()
	defer s.connections.mu.Unlock()
	return len(s.connections.large)
}

// Open is how many connections there are, and what their bodies take without a slot.
func (s *Server) Open() (connections, bytes int) {
	s.connections.mu.Lock()
	defer s.connections.mu.Unlock()
	return len(s.connections.all), s.connections.bytes
}

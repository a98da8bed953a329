// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/receiver/connlimit"
)

// Hasten makes a handler answer strangers after a time that a test can wait for often.
func (h *Handler) Hasten(late time.Duration) *Handler {
	h.late = late
	return h
}

// Bound makes the bounds of a server that does not serve yet so small that a test can meet them.
func (s *Server) Bound(limits connlimit.Limits, metrics *Metrics) {
	s.connections = connlimit.New(limits, metrics)
}

// Open is what the server's connections say.
func (s *Server) Open() (connections, large, bytes int) { return s.connections.Open() }

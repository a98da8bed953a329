// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/receiver/connlimit"
)

// AnswerUnverifiedAfter sets the time after which unverified senders are answered.
func (h *Handler) AnswerUnverifiedAfter(delay time.Duration) *Handler {
	h.unverifiedDelay = delay
	return h
}

// Bound sets the limits of a server that does not serve yet.
func (s *Server) Bound(limits connlimit.Limits, metrics *Metrics) {
	s.connections = connlimit.New(limits, metrics)
}

// Open returns what connlimit.Set.Open does.
func (s *Server) Open() (connections, large, bytes int) { return s.connections.Open() }

// Handler returns what the server does with a request.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.route) }

// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/plumbline-ci/plumbline/pkg/receiver/connlimit"
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
)

// Server serves deliveries, GET /, GET /live and GET /ready on one listener, and shuts down without
// losing a delivery.
type Server struct {
	// DrainWait is how long it goes on serving after the shutdown was requested.
	DrainWait time.Duration
	// StuckAfter is how long a delivery may take before GET /live reports that the process makes no
	// progress.
	StuckAfter time.Duration
	// Timeout bounds each call of a delivery to the API server.
	Timeout recorder.CallTimeout
	// Waits returns what the receiver waits for before it can verify and store deliveries, a line
	// for each thing. It makes no call, and returns none from then on, also in an outage.
	Waits  func() []string
	Logger *zap.SugaredLogger

	deliveries  http.Handler
	connections *connlimit.Set
	probe       *probe
	progress    progress
	draining    atomic.Bool
}

// NewServer returns a server that passes everything but its own paths to deliveries. Metrics may be
// nil.
func NewServer(deliveries http.Handler, metrics *Metrics) *Server {
	return &Server{
		DrainWait: DrainWait, StuckAfter: stuckAfter, deliveries: deliveries, probe: newProbe(),
		connections: connlimit.New(connlimit.Limits{
			Total:      maxConnections,
			Unverified: maxUnverified,
			Bytes:      maxUnslottedBytes,
			Patience:   patience,
			Headers:    headerTimeout,
			Rate:       contendedRate,
		}, metrics),
	}
}

// Serve serves on the listener until ctx ends, and then shuts down:
//  1. It reports not ready at once.
//  2. It goes on serving for DrainWait, and has each client close its connection.
//  3. It closes the listener, and waits at most ShutdownWait for deliveries in flight.
//
// The error says that the listener failed, or that deliveries had to be interrupted.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := s.httpServer()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(s.connections.Listen(listener)) }()
	probing, stopProbing := context.WithCancel(ctx)
	defer stopProbing()
	go s.probe.run(probing, listener.Addr())

	select {
	case err := <-failed:
		return fmt.Errorf("serving deliveries: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	s.Logger.Infow("draining: not ready, still serving", "for", s.DrainWait.String())
	select {
	case err := <-failed:
		return fmt.Errorf("serving deliveries while draining: %w", err)
	case <-time.After(s.DrainWait):
	}
	return s.shutdown(context.WithoutCancel(ctx), server)
}

func (s *Server) shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout.Scale(ShutdownWait))
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("waiting for deliveries in flight: %w", err), server.Close())
	}
	return nil
}

func (s *Server) httpServer() *http.Server {
	errorLog, err := zap.NewStdLogAt(s.Logger.Desugar(), zap.WarnLevel)
	if err != nil { // only for a level that does not exist
		errorLog = nil
	}
	return &http.Server{
		Handler:           http.HandlerFunc(s.route),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      s.Timeout.Scale(writeTimeout),
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          errorLog,
		ConnContext:       connlimit.ConnContext,
		ConnState:         s.connections.ConnState,
	}
}

// route passes on everything but a GET of the server's own paths. While the server drains, clients
// open their next connection elsewhere. Idle connections stay open until the end, because closing
// one in the moment its client uses it would be a connection error. A request for one of the own
// paths is unverified, so its connection is closed.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	connlimit.Of(r.Context()).RequestStarted()
	own := r.Method == http.MethodGet && slices.Contains([]string{"/", "/live", "/ready"}, r.URL.Path)
	if own || s.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	switch {
	case own && r.URL.Path == "/live":
		s.probe.answer(w, s.progress.longest() < s.Timeout.Scale(s.StuckAfter))
	case own && r.URL.Path == "/": // load balancers probe this path
		answer{status: http.StatusOK, message: "Plumbline: Git services send their deliveries here by POST"}.write(w)
	case own:
		s.ready(w, r)
	default:
		defer s.progress.start()()
		s.deliveries.ServeHTTP(w, r)
	}
}

// ready answers a readiness probe. It never calls the API server: an outage would remove every
// endpoint, where a 503 with Retry-After is the better answer.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	waits := s.Waits()
	if !s.probe.passed() {
		waits = append(waits, "The receiver's own request through its listener: none has succeeded lately")
	}
	switch {
	case s.draining.Load():
		http.Error(w, "draining", http.StatusServiceUnavailable)
	case len(waits) > 0:
		http.Error(w, "not ready, waiting for:\n"+strings.Join(waits, "\n"), http.StatusServiceUnavailable)
	default:
		_, _ = io.WriteString(w, "ready\n")
	}
}

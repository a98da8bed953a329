// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"
)

// Host is what tests see of every forge: where it listens and what it was asked. A forge embeds it.
// S is its state as WaitFor shows it, W an entry of its write log.
type Host[S, W any] struct {
	core    *Core
	addr    string
	handler http.Handler
	state   func() S
	writes  []*W
}

// NewHost returns a host that does not listen yet; addr is where it will, "" a free port of
// 127.0.0.1.
func NewHost[S, W any](core *Core, addr string, handler http.Handler, state func() S) *Host[S, W] {
	core.BaseURL = "http://127.0.0.1:0"
	return &Host[S, W]{core: core, addr: addr, handler: handler, state: state}
}

// Start listens and serves until Close.
func (h *Host[S, W]) Start() error { return h.start(nil) }

// StartTLS is Start with https.
func (h *Host[S, W]) StartTLS(certificate tls.Certificate) error {
	return h.start(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}})
}

func (h *Host[S, W]) start(secure *tls.Config) error {
	if h.addr == "" {
		h.addr = "127.0.0.1:0"
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", h.addr)
	if err != nil {
		return fmt.Errorf("starting the forge: %w", err)
	}
	h.core.Mu.Lock()
	defer h.core.Mu.Unlock()
	h.core.BaseURL = "http://" + listener.Addr().String()
	if secure != nil {
		h.core.BaseURL = "https://" + listener.Addr().String()
		listener = tls.NewListener(listener, secure)
	}
	server := &http.Server{Handler: h.handler, ReadHeaderTimeout: 10 * time.Second}
	h.core.server = server
	// Serve returns when Close closes the listener; its error says only that.
	go func() { _ = server.Serve(listener) }()
	return nil
}

// Close stops listening, drops every connection and releases hung requests.
func (h *Host[S, W]) Close() error {
	h.core.stop.Do(func() { close(h.core.done) })
	h.core.Mu.Lock()
	server := h.core.server
	h.core.Mu.Unlock()
	if server == nil {
		return nil
	}
	if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing the forge: %w", err)
	}
	return nil
}

// URL is where the forge listens, such as http://127.0.0.1:34567, without a path.
func (h *Host[S, W]) URL() string {
	h.core.Mu.Lock()
	defer h.core.Mu.Unlock()
	return h.core.BaseURL
}

// WaitFor blocks until ok says so of the forge's state, or ctx ends. ok runs under the forge's lock
// after every change: it must call methods of the state only.
func (h *Host[S, W]) WaitFor(ctx context.Context, ok func(S) bool) error {
	return h.core.WaitFor(ctx, func() bool { return ok(h.state()) })
}

// Inject makes the fault active until it is spent or removed.
func (h *Host[S, W]) Inject(f Fault) *FaultHandle { return h.core.Inject(f) }

// Requests lists every call so far.
func (h *Host[S, W]) Requests() []Request { return locked(h, View[W].Requests) }

// Counts says how many calls each route had.
func (h *Host[S, W]) Counts() map[string]int {
	out := map[string]int{}
	for _, r := range h.Requests() {
		out[r.Route]++
	}
	return out
}

// Count says how many calls a route had; an empty route counts all.
func (h *Host[S, W]) Count(route string) int {
	return locked(h, func(v View[W]) int { return v.Count(route) })
}

// Writes lists every mutating call so far.
func (h *Host[S, W]) Writes() []W { return locked(h, View[W].Writes) }

func locked[S, W, T any](h *Host[S, W], read func(View[W]) T) T {
	h.core.Mu.Lock()
	defer h.core.Mu.Unlock()
	return read(ViewOf(h))
}

// View is a forge's log under its lock. A forge's state embeds it.
type View[W any] struct {
	core   *Core
	writes []*W
}

// ViewOf is that of a host. The caller holds Mu.
func ViewOf[S, W any](h *Host[S, W]) View[W] { return View[W]{h.core, h.writes} }

// Log appends to the write log and returns the entry's number. The caller holds Mu.
func Log[S, W any](h *Host[S, W], w *W) int {
	h.writes = append(h.writes, w)
	return len(h.writes)
}

// Requests lists every call so far.
func (v View[W]) Requests() []Request { return slices.Clone(v.core.requests) }

// Count says how many calls a route had; an empty route counts all.
func (v View[W]) Count(route string) int {
	n := 0
	for i := range v.core.requests {
		if route == "" || v.core.requests[i].Route == route {
			n++
		}
	}
	return n
}

// Writes lists every mutating call so far.
func (v View[W]) Writes() []W { return Copies(v.writes) }

// Copies are the values that pointers point to.
func Copies[T any](list []*T) []T {
	out := make([]T, len(list))
	for i, v := range list {
		out[i] = *v
	}
	return out
}

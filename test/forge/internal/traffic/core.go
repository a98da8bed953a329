// SPDX-License-Identifier: Apache-2.0

// Package traffic is what the forges of the tests have in common about what
// passes between them and their clients: the log of requests, scripted
// faults, waiting for a change, and sending deliveries. It knows no routes.
package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Core is one forge's traffic. Create it with New.
type Core struct {
	// Mu guards the core and all state of the forge.
	Mu sync.Mutex

	now      func() time.Time
	done     chan struct{}
	stop     sync.Once
	server   *http.Server
	listener net.Listener
	changed  chan struct{}
	requests []Request
	faults   []*FaultHandle
}

// New returns a core with the forge's clock.
func New(now func() time.Time) *Core {
	return &Core{now: now, done: make(chan struct{}), changed: make(chan struct{})}
}

// Listen takes the address and returns the URL it stands for. Nothing is
// served before Serve.
func (c *Core) Listen(addr string) (string, error) {
	lis, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("starting the forge: %w", err)
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.listener = lis
	return "http://" + lis.Addr().String(), nil
}

// Serve serves what Listen took until Close.
func (c *Core) Serve(h http.Handler) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.server = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	srv, lis := c.server, c.listener
	// Serve returns when Close closes the listener; its error says only that.
	go func() { _ = srv.Serve(lis) }()
}

// Close stops listening, drops every connection and releases hung requests.
func (c *Core) Close() error {
	c.stop.Do(func() { close(c.done) })
	c.Mu.Lock()
	srv := c.server
	c.Mu.Unlock()
	if srv == nil {
		return nil
	}
	if err := srv.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing the forge: %w", err)
	}
	return nil
}

// WaitFor blocks until ok holds, or ctx ends. ok runs under Mu after every change.
func (c *Core) WaitFor(ctx context.Context, ok func() bool) error {
	for {
		c.Mu.Lock()
		met, changed := ok(), c.changed
		c.Mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the forge: %w", ctx.Err())
		}
	}
}

// Notify wakes every WaitFor. The caller holds Mu.
func (c *Core) Notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Request is one call a client made, in the order of arrival.
type Request struct {
	N      int
	Time   time.Time
	Method string
	Path   string // of a GitHub without /api/v3
	Query  string
	Route  string
	Status int  // what the client was told; 0 while it waits or when it got no answer
	Fault  bool // a scripted fault decided the answer
}

// Requests lists every call so far. The caller holds Mu.
func (c *Core) Requests() []Request { return append([]Request(nil), c.requests...) }

// Count says how many calls a route had; an empty route counts all. The
// caller holds Mu.
func (c *Core) Count(route string) int {
	n := 0
	for i := range c.requests {
		if route == "" || c.requests[i].Route == route {
			n++
		}
	}
	return n
}

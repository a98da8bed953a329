// SPDX-License-Identifier: Apache-2.0

// Package traffic is what the forges of the tests have in common about what
// passes between them and their clients: the log of requests, scripted
// faults, waiting for a change, and sending deliveries. It knows no routes.
package traffic

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Core is one forge's traffic. Create it with New.
type Core struct {
	// Mu guards the core and all state of the forge.
	Mu sync.Mutex

	// BaseURL is where the forge listens.
	BaseURL string

	now      func() time.Time
	lastID   int64
	done     chan struct{}
	stop     sync.Once
	server   *http.Server
	changed  chan struct{}
	requests []Request
	faults   []*FaultHandle
}

// New returns a core with the forge's clock, whose ids begin after lastID.
func New(now func() time.Time, lastID int64) *Core {
	return &Core{now: now, lastID: lastID, done: make(chan struct{}), changed: make(chan struct{})}
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

// NextID gives the next number; ids are unique over all kinds. The caller holds Mu.
func (c *Core) NextID() int64 {
	c.lastID++
	return c.lastID
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

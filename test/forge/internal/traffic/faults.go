// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

// Fault is a scripted misbehaviour. It takes the calls that match both Route
// and Match; of several faults the one injected first and still active wins.
type Fault struct {
	// Route is the name of a route; empty is every route.
	Route string
	// Match may look at the request, body included; nil matches all. It runs
	// under the forge's lock and must not call the forge.
	Match func(*http.Request) bool
	// From is the first matching call that is hit, counted from 1 since Inject; 0 is 1.
	From int
	// Count is how many calls are hit; 0 is all.
	Count int
	// For ends the fault this long after its first hit; 0 is never.
	For time.Duration
	// Do is what happens instead of the answer.
	Do Action
}

// FaultHandle is an injected fault.
type FaultHandle struct {
	core  *Core
	f     Fault
	seen  int
	hits  int
	first time.Time
	gone  bool
}

// Inject makes the fault active until it is spent or removed.
func (c *Core) Inject(f Fault) *FaultHandle {
	if f.Do == nil {
		panic("forge: Inject: a fault without Do")
	}
	h := &FaultHandle{core: c, f: f}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.faults = append(c.faults, h)
	return h
}

// Hits says how many calls the fault got.
func (h *FaultHandle) Hits() int {
	h.core.Mu.Lock()
	defer h.core.Mu.Unlock()
	return h.hits
}

// Seen says how many calls matched since Inject, hit or not.
func (h *FaultHandle) Seen() int {
	h.core.Mu.Lock()
	defer h.core.Mu.Unlock()
	return h.seen
}

// Wait blocks until the fault got n calls, or ctx ends.
func (h *FaultHandle) Wait(ctx context.Context, n int) error {
	return h.core.WaitFor(ctx, func() bool { return h.hits >= n })
}

// Remove ends the fault. Calls that it holds or hangs stay as they are.
func (h *FaultHandle) Remove() {
	h.core.Mu.Lock()
	defer h.core.Mu.Unlock()
	h.gone = true
}

// pickFault counts the call for every fault it matches and returns the one
// that gets it. The caller holds Mu.
func (c *Core) pickFault(x Exchange) *FaultHandle {
	var picked *FaultHandle
	for _, h := range c.faults {
		if h.gone || !h.matches(x) {
			continue
		}
		h.seen++
		if picked == nil && h.active() {
			picked = h
		}
	}
	if picked == nil {
		return nil
	}
	if picked.hits == 0 {
		picked.first = c.now()
	}
	picked.hits++
	return picked
}

func (h *FaultHandle) matches(x Exchange) bool {
	if h.f.Route != "" && h.f.Route != x.Route {
		return false
	}
	if h.f.Match == nil {
		return true
	}
	r := x.R.Clone(x.R.Context())
	r.Body = io.NopCloser(bytes.NewReader(x.Body))
	return h.f.Match(r)
}

func (h *FaultHandle) active() bool {
	switch {
	case h.seen < h.f.From:
		return false
	case h.f.Count > 0 && h.hits >= h.f.Count:
		return false
	case h.f.For > 0 && h.hits > 0 && h.core.now().Sub(h.first) > h.f.For:
		return false
	}
	return true
}

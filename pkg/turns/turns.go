// SPDX-License-Identifier: Apache-2.0

// Package turns decides whose turn it is at a Git service: each service gets at most a share of the workers, so that one
// that hangs cannot hold them all (B15).
package turns

import (
	"maps"
	"sync"
	"time"
)

// Retry is how soon whoever found no turn tries again.
const Retry = time.Second

// Turns counts who is at which Git service. It is advice: losing it costs time, never truth. Safe for concurrent use.
type Turns struct {
	mu    sync.Mutex
	limit int
	taken map[string]int
}

// New lets so many have a turn at each key at once.
func New(limit int) *Turns {
	return &Turns{limit: limit, taken: map[string]int{}}
}

// Take takes a turn at a key, e.g. a host and an installation of the App there: "github.com/42". It never waits: free is
// false when the key has no turn left, and release is nil then. Otherwise release gives the turn back and must be called
// once.
func (t *Turns) Take(key string) (release func(), free bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[key] >= t.limit {
		return nil, false
	}
	t.taken[key]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.taken[key]--; t.taken[key] <= 0 {
			delete(t.taken, key)
		}
	}, true
}

// Taken returns how many turns are taken at each key. A key without any is not in it.
func (t *Turns) Taken() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.taken)
}

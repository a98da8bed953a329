// SPDX-License-Identifier: Apache-2.0

// Package panics passes the panic of a goroutine to the goroutine that waits for it. Go ends the
// process if nothing in the same goroutine catches a panic, and a reconciler catches only those of
// its own goroutine.
package panics

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Catcher stores the first panic of the functions it runs. The zero value is ready. Safe for
// concurrent use.
type Catcher struct {
	mu     sync.Mutex
	caught string
}

// Run calls f and returns also if f panics.
func (c *Catcher) Run(f func()) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.caught == "" {
			c.caught = fmt.Sprintf("%v\n%s", cause, debug.Stack())
		}
	}()
	f()
}

// Again panics with the stored panic and its stack, if there is one.
func (c *Catcher) Again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caught != "" {
		panic(c.caught)
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package panics hands the panic of a goroutine over to the one that waits for it. Go ends the
// process for a panic that nothing catches in its own goroutine, and the reconciler catches those
// of its own alone.
package panics

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Catcher keeps the first panic of the functions it runs. The zero value is ready to use, by
// several goroutines.
type Catcher struct {
	mu     sync.Mutex
	caught string
}

// Run runs a function and returns also when that panics.
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

// Again panics with the panic that was caught, and its stack, if there was one.
func (c *Catcher) Again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caught != "" {
		panic(c.caught)
	}
}

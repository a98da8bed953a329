// SPDX-License-Identifier: Apache-2.0

package panics

import (
	"strings"
	"sync"
	"testing"
)

// The goroutine that waits for another one panics with the panic of that one and its stack.
func TestAgainRepeatsThePanic(t *testing.T) {
	t.Parallel()
	var c Catcher
	var all sync.WaitGroup
	for _, f := range []func(){func() {}, explode} {
		all.Go(func() { c.Run(f) })
	}
	all.Wait()
	defer func() {
		if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "boom\n") || !strings.Contains(text, "explode") {
			t.Errorf("panicked with %q, want the cause and its stack", text)
		}
	}()
	c.Again()
	t.Error("the panic is lost")
}

func explode() { panic("boom") }

func TestAgainWithoutPanic(t *testing.T) {
	t.Parallel()
	var c Catcher
	c.Run(func() {})
	c.Again() // and the test goes on
}

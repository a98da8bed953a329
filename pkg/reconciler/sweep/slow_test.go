// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"testing"
	"time"
)

// One page of 500 objects may take longer than a reconcile has: the turn ends in the middle of it. Otherwise each turn of a
// backlog would end as a failure, and the workqueue would wait longer after each of them.
func TestATurnEndsInTheMiddleOfAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(1000)
	w.later(5 * 24 * time.Hour)
	w.perCall = 100 * time.Millisecond
	for len(w.events) > 0 {
		began, left := w.clock.Now(), len(w.events)
		_ = w.sweep.Reconcile(t.Context(), system+"/"+key) // the timer of the next turn
		if took := w.clock.Since(began); took > 2*turn {
			t.Fatalf("a turn of %v took %v, a reconcile has %v", turn, took, deadline)
		}
		if len(w.events) == left {
			t.Fatal("a turn did nothing")
		}
	}
}

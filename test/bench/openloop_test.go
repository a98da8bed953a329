// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// A call that takes long makes no other one late, and is measured from when it had to begin.
func TestOpenLoopKeepsPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		begun := map[int]time.Duration{}
		begin := time.Now()
		installation.OpenLoop(t.Context(), each(2), 6, func(i int, due time.Time) {
			mu.Lock()
			begun[i] = time.Since(begin)
			mu.Unlock()
			if want := begin.Add(time.Duration(i) * 500 * time.Millisecond); !due.Equal(want) {
				t.Errorf("call %d is due at %v, want %v", i, due, want)
			}
			<-time.After(time.Minute)
		})
		for i := range 6 {
			if want := time.Duration(i) * 500 * time.Millisecond; begun[i] != want {
				t.Errorf("call %d began after %v, want %v", i, begun[i], want)
			}
		}
	})
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(100-i))
	}
	for p, want := range map[int]time.Duration{50: 50, 95: 95, 99: 99, 100: 100} {
		if got := installation.Percentile(all, p); got != want {
			t.Errorf("p%d is %d, want %d", p, got, want)
		}
	}
	if got := installation.Percentile(all[:1], 50); got != 100 {
		t.Errorf("p50 of one is %d", got)
	}
	if got := installation.Percentile(nil, 99); got != 0 {
		t.Errorf("p99 of none is %d", got)
	}
}

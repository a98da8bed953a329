// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A call that takes long makes no other one late, and is measured from when it had to begin.
func TestTheOpenLoopKeepsItsPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		begun := map[int]time.Duration{}
		begin := time.Now()
		openLoop(t.Context(), 2, 6, func(i int, due time.Time) {
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
		if got := percentile(all, p); got != want {
			t.Errorf("p%d is %d, want %d", p, got, want)
		}
	}
	if got := percentile(all[:1], 50); got != 100 {
		t.Errorf("p50 of one is %d", got)
	}
	if got := percentile(nil, 99); got != 0 {
		t.Errorf("p99 of none is %d", got)
	}
}

// The closed loop ends with its time.
func TestTheClosedLoopEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := 0
		begin := time.Now()
		closedLoop(t.Context(), 3, 10*time.Second, func(ctx context.Context) bool {
			mu.Lock()
			calls++
			mu.Unlock()
			return reach(ctx, time.Now().Add(time.Second))
		})
		if took := time.Since(begin); took != 10*time.Second || calls < 30 {
			t.Errorf("%d calls in %v", calls, took)
		}
	})
}

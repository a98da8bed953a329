// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"time"
)

// openLoop calls do n times, rate times a second, whatever the calls take, and returns when all have returned. due is when a call
// had to begin: who measures from there leaves out nothing that a busy system made late.
func openLoop(ctx context.Context, rate float64, n int, do func(i int, due time.Time)) {
	begin := time.Now()
	var flying sync.WaitGroup
	defer flying.Wait()
	for i := range n {
		due := begin.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		if !reach(ctx, due) {
			return
		}
		flying.Go(func() { do(i, due) })
	}
}

// closedLoop has so many workers that call do again as soon as it returns, until the time is over or do returns false.
func closedLoop(ctx context.Context, workers int, during time.Duration, do func(ctx context.Context) bool) {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	var working sync.WaitGroup
	defer working.Wait()
	for range workers {
		working.Go(func() {
			for ctx.Err() == nil && do(ctx) {
			}
		})
	}
}

// reach waits until a time; false is that ctx ended before.
func reach(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

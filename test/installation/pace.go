// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"slices"
	"sync"
	"time"
)

// OpenLoop calls do n times, one each pace, however long the calls take, until ctx ends, and
// returns when all have returned. due is when a call had to start: a measurement from there
// includes the delays of a busy system.
func OpenLoop(ctx context.Context, pace time.Duration, n int, do func(i int, due time.Time)) {
	begin := time.Now()
	var flying sync.WaitGroup
	defer flying.Wait()
	for i := range n {
		due := begin.Add(time.Duration(i) * pace)
		if !Until(ctx, due) {
			return
		}
		flying.Go(func() { do(i, due) })
	}
}

// Until waits until a time; it returns false if ctx ended before.
func Until(ctx context.Context, at time.Time) bool {
	select {
	case <-time.After(time.Until(at)):
		return true
	case <-ctx.Done():
		return false
	}
}

// Percentile is the smallest duration that p of a hundred do not exceed; 0 of none.
func Percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)*p+99)/100-1]
}

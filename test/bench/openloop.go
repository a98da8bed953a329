// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"time"
)

// closedLoop has so many workers that call do again as soon as it returns, until the time is over
// or do returns false.
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

// each is the time between two, so many a second.
func each(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }

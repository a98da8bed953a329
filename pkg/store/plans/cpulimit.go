// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
)

const (
	// share is how many microseconds of a core all large plans together may use in a second. It is
	// an eighth of the core, so that large plans do not delay other events.
	share = 1_000_000 / 8
	// burst is how much of that a plan takes at once, so that plans of small and of large pieces
	// have equal parts.
	burst = share / 25
	// throttledRetry is when a plan is retried that would have to wait for longer than its
	// reconcile may take.
	throttledRetry = 10 * time.Second
)

// NewRate returns the Rate of a process.
func NewRate() *rate.Limiter { return rate.NewLimiter(share, share) }

// Throttle waits until work may start that only large plans need, and that takes a core so long.
// Such a plan reserves the memory of two plans. So a namespace makes one at once, and the process
// two. The error is a Throttled fault with reason Busy.
func (p *StoredPlan) Throttle(ctx context.Context, work time.Duration) error {
	if err := p.Reserve("large plan", memory.MaxPart); err != nil {
		return err
	}
	for left := int(work.Microseconds()); left > 0; left -= burst {
		if err := p.Rate.WaitN(ctx, min(left, burst)); err != nil {
			return fault.Throttledf(fault.ReasonBusy, throttledRetry,
				"waiting for CPU time: other large plans are being made: %w", err)
		}
	}
	return nil
}

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
	// share is how many microseconds of a core large plans have in a second, all together: an
	// eighth. Whoever pushes them keeps nobody waiting.
	share = 1_000_000 / 8
	// turn is how much of that a plan takes at once: whoever works in small pieces does not wait
	// for those who work in large ones, and each of two has its half.
	turn = share / 25
	// restRetry is how soon a plan is made again that would rest longer than its reconcile may
	// take.
	restRetry = 10 * time.Second
)

// NewPace is the Pace of a process.
func NewRate() *rate.Limiter { return rate.NewLimiter(share, share) }

// Rest returns when work may be done that takes a core so long, and that only large plans need.
// Such a plan takes as much memory as two, so that a namespace makes one at once, and the process
// two. The error is a Throttled fault with reason Busy.
func (p *Plan) Rest(ctx context.Context, work time.Duration) error {
	if err := p.Hold("large plan", memory.MaxPart); err != nil {
		return err
	}
	for left := int(work.Microseconds()); left > 0; left -= turn {
		if err := p.Rate.WaitN(ctx, min(left, turn)); err != nil {
			return fault.Throttledf(fault.ReasonBusy, restRetry, "others' large plans are made: %w", err)
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Rules are the limits that a service publishes. The zero value has none; limits in the service's
// answers are followed anyway.
type Rules struct {
	// AtOnce limits the calls in flight; 0 is unlimited.
	AtOnce int
	// OneWrite allows only one write in flight.
	OneWrite bool
	Budgets  []Budget
}

// Budget is how much may be used within a time.
type Budget struct {
	// Most may be used within any period of Within. A third of it may be used at once.
	Most   int
	Within time.Duration
	// Costs returns how much a call uses.
	Costs func(Call) int
}

type budget struct {
	*rate.Limiter
	costs func(Call) int
}

func newBudget(b Budget) budget {
	burst := b.Most / 3 // the rest is refilled evenly, so that it never exceeds Most within the time
	return budget{rate.NewLimiter(rate.Limit(float64(b.Most-burst)/b.Within.Seconds()), burst), b.Costs}
}

// Call describes a call for the limits.
type Call struct {
	Method string
	// Notifies is true for a call that notifies people: a new comment.
	Notifies bool
	// Repeats is true for a call that generates no content: a redelivery.
	Repeats bool
	// Alone is a name: two calls with the same name are never in flight at the same time. It is
	// empty for most calls.
	Alone string
}

// Writes reports whether the call changes something.
func (c Call) Writes() bool { return c.Method != http.MethodGet && c.Method != http.MethodHead }

// spend takes the cost of the call from each budget. If a budget is exhausted, it waits a short
// time, or fails.
func (p *Pace) spend(ctx context.Context, call Call) error {
	now, wait := p.now(), time.Duration(0)
	var spent []*rate.Reservation
	for _, b := range p.budgets {
		if costs := b.costs(call); costs > 0 {
			r := b.ReserveN(now, costs)
			spent = append(spent, r)
			wait = max(wait, r.DelayFrom(now))
		}
	}
	if wait == 0 {
		return nil
	}
	err := error(fault.Throttledf(ReasonPaced, wait, "waiting until the Git service's published limits have room"))
	if wait <= p.patience {
		err = p.pause(ctx, wait)
	}
	if err != nil {
		for _, r := range spent {
			r.CancelAt(now)
		}
	}
	return err
}

func (p *Pace) pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fault.New(fault.Transient, fault.ReasonCanceled, ctx.Err())
	case <-timer.C:
		return nil
	}
}

// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Rules are the limits that a service publishes. The zero value is a service that has none: what it
// says in its answers counts all the same.
type Rules struct {
	// AtOnce bounds the calls in flight; 0 does not.
	AtOnce int
	// OneWrite lets one write be made at a time.
	OneWrite bool
	Budgets  []Budget
}

// Budget is how much may be called within a time.
type Budget struct {
	// Most may be spent within any Within. A third of it may be spent at once.
	Most   int
	Within time.Duration
	// Costs is what a call takes of it.
	Costs func(Call) int
}

type budget struct {
	*rate.Limiter
	costs func(Call) int
}

func newBudget(b Budget) budget {
	burst := b.Most / 3 // and the rest evenly: together never more than Most within the time
	return budget{rate.NewLimiter(rate.Limit(float64(b.Most-burst)/b.Within.Seconds()), burst), b.Costs}
}

// Call is a call as limits count it.
type Call struct {
	Method string
	// Notifies is true for a call that people are notified of: a new comment.
	Notifies bool
	// Repeats is true for a call that generates no content: a redelivery.
	Repeats bool
	// Alone is a name: no two calls of the same name are made at once. Empty is none.
	Alone string
}

// Writes reports whether the call changes something.
func (c Call) Writes() bool { return c.Method != http.MethodGet && c.Method != http.MethodHead }

// spend takes what the call costs of each budget, and waits until it is there if that is soon.
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

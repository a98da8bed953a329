// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// An event may have hundreds of runs, and each costs each step some calls: all of them need not fit
// one reconcile. A step goes on to its next run for its time, and no step does later than stepsEnd
// after the reconcile began, so that what was done is recorded before reconcileDeadline. Losing
// that record would repeat the same calls at each attempt and never come further.
const (
	LongTurn  = 15 * time.Second // for writes of PipelineRuns: client-go repeats a throttled one for 10 s by itself
	ShortTurn = 8 * time.Second  // below the Fence
	stepsEnd  = 40 * time.Second
)

// Turn begins a step's time. The function it returns is called before each run; once the time is
// over it returns a Throttled fault that brings the event back soon, and nothing is recorded about
// it.
func (a *Attempt) Turn(long time.Duration) (over func() error) {
	end := a.Clock.Now().Add(long)
	if last := a.Began.Add(stepsEnd); last.Before(end) {
		end = last
	}
	return func() error {
		if a.Clock.Now().Before(end) {
			return nil
		}
		return fault.Throttledf(fault.ReasonBusy, time.Second, "the other runs of %s are next", a.Event.Name)
	}
}

// InTurn returns what a step goes through, after a failure beginning anywhere: one whose call takes
// long to fail must not use up every turn.
func InTurn[T any](failed bool, list []T) []T {
	if !failed || len(list) < 2 {
		return list
	}
	at := rand.IntN(len(list)) //nolint:gosec // an order, not a secret
	return slices.Concat(list[at:], list[:at])
}

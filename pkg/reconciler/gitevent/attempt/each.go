// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// An event may have hundreds of runs, and each run costs each step some calls. They need not all
// fit into one reconcile: a step starts no further run after its limit, and no step does later than
// stepsEnd after the reconcile began. So what was done is recorded before reconcileDeadline. If
// that record were lost, each attempt would repeat the same calls and make no progress.
const (
	LongLimit  = 15 * time.Second // for writes of PipelineRuns: client-go repeats a throttled write for 10 s by itself
	ShortLimit = 8 * time.Second  // below the Fence
	stepsEnd   = 40 * time.Second
)

// TimeLimit starts the time of a step. The function it returns returns nil until that time is over,
// and then a Throttled fault that requeues the event soon. The status does not record that fault.
func (a *Attempt) TimeLimit(limit time.Duration) (exceeded func() error) {
	end := a.Clock.Now().Add(limit)
	if last := a.Started.Add(stepsEnd); last.Before(end) {
		end = last
	}
	return func() error {
		if a.Clock.Now().Before(end) {
			return nil
		}
		return fault.Throttledf(fault.ReasonBusy, time.Second, "the other runs of %s are next", a.Event.Name)
	}
}

// Within returns a condition for Each: the step's time is not over, and check returns nil.
func (a *Attempt) Within(limit time.Duration, check func(context.Context) error) func(context.Context) error {
	exceeded := a.TimeLimit(limit)
	return func(ctx context.Context) error { return Merge([]error{check(ctx), exceeded()}) }
}

// Each calls do for each item while proceed returns nil, and returns the errors of all calls. An
// item that fails does not keep the others from being done, unless its error is marked by Stop.
func Each[T any](
	ctx context.Context, items []T, proceed func(context.Context) error, do func(context.Context, T) error,
) []error {
	var faults []error
	for _, item := range items {
		if err := proceed(ctx); err != nil {
			return append(faults, err)
		}
		err := do(ctx, item)
		if last := (*stopped)(nil); errors.As(err, &last) {
			return append(faults, last.error)
		}
		faults = append(faults, err)
	}
	return faults
}

// stopped is an error that ends Each.
type stopped struct{ error }

// Stop marks an error: Each calls do for no other item. Each returns the error without the mark.
func Stop(err error) error { return &stopped{err} }

// Rotated returns a list that starts at a random item if the step failed before. Otherwise a first
// item whose call takes long to fail would exhaust the time of every reconcile.
func Rotated[T any](failed bool, list []T) []T {
	if !failed || len(list) < 2 {
		return list
	}
	at := rand.IntN(len(list)) //nolint:gosec // an order, not a secret
	return slices.Concat(list[at:], list[:at])
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// An event may have hundreds of runs, and each costs each step some calls: all of them need not fit one reconcile. A
// step goes on to its next run for its time, and no step does later than stepsEnd after the reconcile began, so that
// what was done is recorded before reconcileDeadline. Losing that record would repeat the same calls at each attempt
// and never come further.
const (
	createTime = 15 * time.Second // runs that start late cost their authors most
	stepTime   = 8 * time.Second  // below the fence, which is for pauses
	stepsEnd   = 40 * time.Second
)

// turn begins a step's time. The function it returns is called before each run; once the time is over it returns a
// Throttled fault that brings the event back soon, and nothing is recorded about it.
func (w *work) turn(long time.Duration) (over func() error) {
	end := w.r.clock.Now().Add(long)
	if last := w.began.Add(stepsEnd); last.Before(end) {
		end = last
	}
	return func() error {
		if w.r.clock.Now().Before(end) {
			return nil
		}
		return fault.Throttledf(fault.ReasonBusy, busyRetry, "the other runs of %s are next", w.event.Name)
	}
}

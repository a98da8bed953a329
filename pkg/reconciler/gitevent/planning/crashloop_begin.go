// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

const (
	// MaxUnfinished is how many unfinished attempts park an event: as many as panics do.
	MaxUnfinished = attempt.MaxPanics
	// The memory in bytes that planning one event takes: the minimum, and how much more for each
	// byte of definitions.
	minMemory     = 4 << 20
	memoryPerByte = 8
)

// begin records the start of a planning attempt if an earlier one may have crashed a process. The
// returned function records its end; it is nil if the event must not be planned.
func (s *Step) begin(ctx context.Context, a *attempt.Attempt) (end func(), err error) {
	before := s.CrashLoop.Unfinished(a.Event)
	a.Event.Status.Begun = before
	if before >= MaxUnfinished {
		return nil, s.parkFor(
			ctx,
			a,
			fmt.Sprintf(
				"the controller ended %d times while it planned this event: it was killed, perhaps because of what it needs of memory. "+
					"Make the definitions smaller, or report it, and deliver the event again",
				MaxUnfinished,
			),
		)
	}
	if a.Event.CreationTimestamp.IsZero() || !s.CrashLoop.Inherited(a.Event) { // the API server gives every object a time
		return func() {}, nil
	}
	release := func() {}
	if before > 0 {
		if release = s.CrashLoop.Acquire(a); release == nil {
			return nil, fault.Throttledf(fault.ReasonBusy, RetryAfter,
				"another event that a controller may have died of is planned")
		}
	}
	a.Event.Status.Begun = before + 1
	if err := a.Record.Write(ctx); err != nil {
		a.Restore()
		release()
		return nil, err
	}
	return func() {
		release()
		s.CrashLoop.Ended(a, before)
	}, nil
}

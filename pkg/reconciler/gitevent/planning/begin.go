// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/attempt"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// MaxBegun is how many beginnings without an end park an event: as many as panics do.
	MaxBegun = attempt.MaxPanics
	// What the planning of one event holds in bytes: what every one takes, and how much more for each byte of definitions.
	leastHeld   = 4 << 20
	heldPerByte = 8
	// again is how soon whoever found no turn tries again.
	again = time.Second
)

// Beginnings tells whose beginning is recorded, and lets the suspects in one by one. See docs/adr/0018.
type Beginnings struct {
	// Inherited tells whether another process may have worked on an event.
	Inherited func(*v1alpha1.GitEvent) bool

	mu sync.Mutex
	// suspect is held while an event is planned that has a beginning without an end.
	suspect sync.Mutex
	// known is how many beginnings without an end an event really has, if the end of one could not be recorded.
	known map[string]int32
}

// begin records that the planning of an event begins, if a process may have died of it before. The function it returns ends that;
// it is nil if the event is not to be planned.
func (s *Step) begin(ctx context.Context, a *attempt.Attempt) (end func(), err error) {
	before := s.Beginnings.of(a.Event)
	a.Event.Status.Begun = before
	if before >= MaxBegun {
		return nil, s.parkFor(ctx, a, fmt.Sprintf("the controller ended %d times while it planned this event: it was killed, perhaps because of what it needs of memory. "+
			"Make the definitions smaller, or report it, and deliver the event again", MaxBegun))
	}
	if a.Event.CreationTimestamp.IsZero() || !s.Beginnings.Inherited(a.Event) { // the API server gives every object a time
		return func() {}, nil
	}
	release := func() {}
	if before > 0 {
		if !s.Beginnings.suspect.TryLock() {
			return nil, fault.Throttledf(fault.ReasonBusy, again, "another event that a controller may have died of is planned")
		}
		release = s.Beginnings.suspect.Unlock
	}
	a.Event.Status.Begun = before + 1
	if err := a.Record.Write(ctx); err != nil {
		a.Restore()
		release()
		return nil, err
	}
	return func() {
		release()
		s.Beginnings.ended(a, before)
	}, nil
}

// of is how many beginnings of an event have no end.
func (b *Beginnings) of(event *v1alpha1.GitEvent) int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, found := b.known[event.Name]; found {
		return min(known, event.Status.Begun)
	}
	return event.Status.Begun
}

// ended takes a beginning back. It is remembered until the plan is: the status may not be written.
func (b *Beginnings) ended(a *attempt.Attempt, before int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.Planned() {
		delete(b.known, a.Event.Name)
		return
	}
	if b.known == nil {
		b.known = map[string]int32{}
	}
	a.Event.Status.Begun, b.known[a.Event.Name] = before, before
}

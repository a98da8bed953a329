// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Ordinary work is done at once, more work pauses, and too much is refused.
func TestLargePlanPauses(t *testing.T) {
	t.Parallel()
	var rested time.Duration
	d := &draft{planner: &planner{}}
	d.Pause = func(_ context.Context, work time.Duration) error {
		rested += work
		return nil
	}
	const piece = ordinaryWork / 4
	for done := piece; done <= maxWork; done += piece {
		if err := d.pauseForWork(t.Context(), piece); err != nil {
			t.Fatalf("after %v: %v", done, err)
		}
		if want := max(0, done-ordinaryWork); rested != want {
			t.Fatalf("after %v it has rested for %v of work, want %v", done, rested, want)
		}
	}
	if err := d.pauseForWork(t.Context(), piece); !fault.Is(err, fault.Invalid) || d.work.postponed != nil {
		t.Errorf("more than any event may take is %v, put off: %v", err, d.work.postponed)
	}
}

// If Pause refuses, the whole plan is made later.
func TestPlanIsPostponedByPause(t *testing.T) {
	t.Parallel()
	busy := errors.New("busy")
	d := &draft{planner: &planner{}}
	d.Pause = func(context.Context, time.Duration) error { return busy }
	if err := errors.Join(d.pauseForWork(t.Context(), ordinaryWork), d.work.postponed); err != nil {
		t.Errorf("an ordinary plan is put off: %v", err)
	}
	if err := d.pauseForWork(t.Context(), 1); !errors.Is(err, busy) || !errors.Is(d.work.postponed, busy) {
		t.Errorf("a large plan goes on: %v, put off: %v", err, d.work.postponed)
	}
}

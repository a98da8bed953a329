// SPDX-License-Identifier: Apache-2.0

package kept_test

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/kept"
	"github.com/plumbline-ci/plumbline/pkg/memory"
)

// An event that is alone finds room for whatever it needs, another one waits for its turn, and comes to it.
func TestAnEventHoldsItsShareOfTheRoom(t *testing.T) {
	t.Parallel()
	room := memory.NewRoom(func() {})
	alone, other := kept.New(nil, nil, nil, room), kept.New(nil, nil, nil, room)
	for _, what := range []string{"definitions", "payload", "plan", "plan", "another plan", "definitions"} {
		if err := alone.Hold(what, 1<<30); err != nil {
			t.Fatalf("an event that is alone finds no room for its %s: %v", what, err)
		}
	}
	if f := fault.Of(other.Hold("plan", memory.MaxHeld)); f == nil || f.Class != fault.Throttled || f.Reason != fault.ReasonBusy || f.RetryAfter == 0 {
		t.Errorf("%v, want it to come back", f)
	}
	if err := other.Hold("definitions", 4<<20); err != nil {
		t.Errorf("one that needs little finds no room: %v", err)
	}
	alone.Release()
	if err := other.Hold("plan", memory.MaxHeld); err != nil {
		t.Errorf("what was released is not free: %v", err)
	}
	other.Release()
	again := kept.New(nil, nil, nil, room)
	for _, what := range []string{"definitions", "payload", "plan"} {
		if err := again.Hold(what, memory.MaxHeld); err != nil {
			t.Errorf("not all was given back: %v", err)
		}
	}
}

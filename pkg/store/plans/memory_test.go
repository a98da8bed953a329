// SPDX-License-Identifier: Apache-2.0

package plans_test

import (
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// An event that is alone gets all the memory that it needs. Another one is queued, and served
// later.
func TestEventReservesLimitedMemory(t *testing.T) {
	t.Parallel()
	room := memory.NewBudget(time.Now, func() {}, func(string, time.Duration) {})
	of := func(namespace string) *plans.StoredPlan {
		event := &v1alpha1.GitEvent{
			Spec: v1alpha1.GitEventSpec{Repository: v1alpha1.RepositoryReference{Namespace: namespace}},
		}
		return (&plans.Store{Memory: room}).Of(event)
	}
	alone, other, third := of("one"), of("two"), of("three")
	for _, what := range []string{"definitions", "payload", "plan", "plan", "another plan", "definitions"} {
		if err := alone.Reserve(what, 1<<30); err != nil {
			t.Fatalf("an event that is alone finds no room for its %s: %v", what, err)
		}
	}
	if err := other.Reserve("plan", memory.MaxPart); err != nil {
		t.Errorf("one event has taken more than half of the room: %v", err)
	}
	if f := fault.Of(third.Reserve("plan", memory.MaxPart)); f == nil || f.Class != fault.Throttled ||
		f.Reason != fault.ReasonBusy || f.RetryAfter == 0 {
		t.Errorf("%v, want it to come back", f)
	}
	if err := third.Reserve("definitions", 4<<20); err != nil {
		t.Errorf("one that needs little finds no room: %v", err)
	}
	for _, p := range []*plans.StoredPlan{alone, other, third} {
		p.Release()
		if err := p.ReserveAnswers(memory.MaxPart); err != nil { // of a call that no caller waits for any more
			t.Error(err)
		}
	}
	for _, namespace := range []string{"one", "two", "three"} {
		if err := of(namespace).Reserve("plan", memory.MaxPart); err != nil {
			t.Errorf("what was released is not free: %v", err)
		}
	}
}

// Memory for the answers of concurrent calls adds up.
func TestReservedAnswersAddUp(t *testing.T) {
	t.Parallel()
	full := 0
	room := memory.NewBudget(time.Now, func() { full++ }, func(string, time.Duration) {})
	plan := (&plans.Store{Memory: room}).Of(&v1alpha1.GitEvent{})
	for range 8 {
		if err := plan.ReserveAnswers(memory.MaxPart / 8); err != nil {
			t.Fatal(err)
		}
	}
	if room.Reserve("e", "", memory.MaxEvent-memory.MaxPart+1, 0) {
		t.Error("what is held is free")
	}
	plan.Release()
	if !room.Reserve("e", "", memory.MaxEvent, 0) || full != 1 {
		t.Error("what was held is not free")
	}
}

// SPDX-License-Identifier: Apache-2.0

package kept_test

import (
	"context"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/kept"
	"github.com/plumbline-ci/plumbline/pkg/memory"
)

// A namespace makes one large plan at once, the process two, and both together keep their pace.
func TestFewLargePlansAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	store := &kept.Store{Room: memory.NewRoom(func() {}, func(string, time.Duration) {}), Pace: kept.NewPace()}
	of := func(namespace, name string) *kept.Plan {
		event := &v1alpha1.GitEvent{}
		event.Name, event.Spec.Repository.Namespace = name, namespace
		plan := store.Of(event)
		if err := plan.Hold("definitions", 5<<20); err != nil {
			t.Fatal(err)
		}
		return plan
	}
	busy := func(err error) bool {
		f := fault.Of(err)
		return f != nil && f.Class == fault.Throttled && f.Reason == fault.ReasonBusy
	}
	first, same, other, third := of("team", "one"), of("team", "two"), of("other", "three"), of("third", "four")
	for _, plan := range []*kept.Plan{first, first, other} {
		if err := plan.Rest(t.Context(), time.Millisecond); err != nil {
			t.Fatalf("there is room for a large plan in each of two namespaces: %v", err)
		}
	}
	for _, plan := range []*kept.Plan{same, third} {
		if err := plan.Rest(t.Context(), time.Millisecond); !busy(err) {
			t.Errorf("a further large plan is answered %v, want Busy", err)
		}
	}
	first.Release()
	if err := same.Rest(t.Context(), time.Millisecond); err != nil {
		t.Errorf("another one has ended, and the next is answered %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var err error
	for begin := time.Now(); err == nil && time.Since(begin) < time.Minute; {
		err = other.Rest(ctx, 100*time.Millisecond)
	}
	if !busy(err) {
		t.Errorf("whoever would rest longer than it has time is answered %v, want Busy", err)
	}
}

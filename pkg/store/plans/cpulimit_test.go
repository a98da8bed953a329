// SPDX-License-Identifier: Apache-2.0

package plans_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// A namespace makes one large plan at once, and the process two. Both together stay within the
// limit of CPU time.
func TestFewLargePlansAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	store := &plans.Store{
		Memory: memory.NewBudget(time.Now, func() {}, func(string, time.Duration) {}), Rate: plans.NewRate(),
	}
	of := func(namespace, name string) *plans.StoredPlan {
		event := &v1alpha1.GitEvent{}
		event.Name, event.Spec.Repository.Namespace = name, namespace
		plan := store.Of(event)
		if err := plan.Reserve("definitions", 5<<20); err != nil {
			t.Fatal(err)
		}
		return plan
	}
	busy := func(err error) bool {
		f := fault.Of(err)
		return f != nil && f.Class == fault.Throttled && f.Reason == fault.ReasonBusy
	}
	first, same, other, third := of("team", "one"), of("team", "two"), of("other", "three"), of("third", "four")
	for _, plan := range []*plans.StoredPlan{first, first, other} {
		if err := plan.Throttle(t.Context(), time.Millisecond); err != nil {
			t.Fatalf("there is room for a large plan in each of two namespaces: %v", err)
		}
	}
	for _, plan := range []*plans.StoredPlan{same, third} {
		if err := plan.Throttle(t.Context(), time.Millisecond); !busy(err) {
			t.Errorf("a further large plan is answered %v, want Busy", err)
		}
	}
	first.Release()
	if err := same.Throttle(t.Context(), time.Millisecond); err != nil {
		t.Errorf("another one has ended, and the next is answered %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var err error
	for begin := time.Now(); err == nil && time.Since(begin) < time.Minute; {
		err = other.Throttle(ctx, 100*time.Millisecond)
	}
	if !busy(err) {
		t.Errorf("whoever would rest longer than it has time is answered %v, want Busy", err)
	}
}

// Work that takes longer than the burst waits for as long as the limit requires, and is not
// deferred forever.
func TestLongWorkIsThrottledAndFinishes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &plans.Store{
			Memory: memory.NewBudget(time.Now, func() {}, func(string, time.Duration) {}), Rate: plans.NewRate(),
		}
		plan := store.Of(&v1alpha1.GitEvent{})
		begin := time.Now()
		if err := plan.Throttle(t.Context(), 1125*time.Millisecond); err != nil {
			t.Fatalf("a second of work is put off: %v", err)
		}
		if took := time.Since(begin).Round(time.Second); took != 8*time.Second {
			t.Errorf("it has waited for %v, want 8 s: an eighth of a core", took)
		}
	})
}

// Two tenants that make one large plan after the other, all in large pieces, delay a third one's
// plan by at most two minutes: it gets its memory, and then half of the CPU time.
func TestLargePlanFinishesDespiteOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		woken := map[string]chan struct{}{}
		for _, namespace := range []string{"loud", "shrill", "quiet"} {
			for n := range 8 {
				woken[fmt.Sprint(namespace, n)] = make(chan struct{}, 1)
			}
		}
		wake := func(event string, _ time.Duration) {
			select {
			case woken[event] <- struct{}{}:
			default:
			}
		}
		store := &plans.Store{Memory: memory.NewBudget(time.Now, func() {}, wake), Rate: plans.NewRate()}
		// attempt makes a plan of so many pieces, as a reconcile does, and reports whether it came
		// to its end.
		attempt := func(namespace, name string, pieces int, piece time.Duration) bool {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			event := &v1alpha1.GitEvent{}
			event.Name, event.Spec.Repository.Namespace = name, namespace
			plan := store.Of(event)
			defer plan.Release()
			if plan.Queued() != nil || plan.Reserve("definitions", 5<<20) != nil {
				return false
			}
			for range pieces {
				if plan.Throttle(ctx, piece) != nil {
					return false
				}
			}
			return true
		}
		made := func(ctx context.Context, namespace, name string, pieces int, piece time.Duration) {
			for ctx.Err() == nil && !attempt(namespace, name, pieces, piece) {
				select {
				case <-woken[name]:
				case <-time.After(10 * time.Second):
				case <-ctx.Done():
				}
			}
		}
		var others sync.WaitGroup
		for _, namespace := range []string{"loud", "shrill"} {
			for n := range 8 {
				others.Go(func() {
					for ctx.Err() == nil {
						made(ctx, namespace, fmt.Sprint(namespace, n), 18, 100*time.Millisecond)
					}
				})
			}
		}
		<-time.After(time.Minute)
		soon, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		made(soon, "quiet", "quiet0", 186, 7*time.Millisecond)
		if soon.Err() != nil {
			t.Error("it is not made in two minutes")
		}
		stop()
		others.Wait()
	})
}

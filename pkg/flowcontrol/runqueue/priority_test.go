// SPDX-License-Identifier: Apache-2.0

package runqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// prioritized is an event of one run that was recorded so many seconds after the beginning.
func prioritized(name string, received int, priority int32) *v1alpha1.GitEvent {
	e := event(name, received, v1alpha1.Run{Name: "run-of-" + name})
	e.Status.Plan = &v1alpha1.Plan{Priority: &priority}
	return e
}

func names(line []pacv1alpha1.Slot) []string {
	var all []string
	for _, slot := range line {
		all = append(all, slot.Event)
	}
	return all
}

// Twelve steps of priority are worth an hour of waiting. Of two equal events the earlier one is
// first. A priority that no version of Plumbline sets counts as the highest, or the lowest.
func TestPriorityIsAHeadStart(t *testing.T) {
	t.Parallel()
	const hour = 3600
	got := names(Queue([]*v1alpha1.GitEvent{
		event("none", hour, v1alpha1.Run{Name: "run"}), prioritized("just not", 2*hour+1, 12),
		prioritized("as early", 2*hour, 12), prioritized("urgent", 2*hour, 13),
		prioritized("low", 0, -12), prioritized("lower", 0, -13), prioritized("most", 10*hour, 1<<31-1),
		prioritized("least", 0, -1<<31),
	}, nil))
	if want := []string{"urgent", "low", "none", "as early", "just not", "lower", "most", "least"}; !slices.Equal(got,
		want) {
		t.Errorf("the line is %q, want %q", got, want)
	}
}

// The order does not depend on the order of the input, so that two processes agree. A run that
// joins or leaves does not change the order of the others.
func TestQueueOrderIsDeterministic(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(15, 44))
	for range 200 {
		var events []*v1alpha1.GitEvent
		for i := range 2 + random.IntN(20) {
			events = append(events, prioritized(fmt.Sprint("e", i), random.IntN(4)*int(Step/time.Second),
				int32(random.IntN(5)-2)))
		}
		want := names(Queue(events, nil))
		random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		if got := names(Queue(events, nil)); !slices.Equal(got, want) {
			t.Fatalf("shuffled it is %q, and was %q", got, want)
		}
		gone := events[0].Name
		want = slices.DeleteFunc(want, func(name string) bool { return name == gone })
		if got := names(Queue(events[1:], nil)); !slices.Equal(got, want) {
			t.Fatalf("without %s it is %q, want %q", gone, got, want)
		}
	}
}

// While an endless stream of runs with the highest priority takes each free slot, the oldest run
// with the lowest priority is overtaken only by runs that were recorded at most 2*MaxPriority*Step
// after it, and gets the first slot after that.
func TestPriorityStarvesNoRun(t *testing.T) {
	t.Parallel()
	const minute = 60
	for _, test := range []struct {
		old, urgent int32
		bound       time.Duration
	}{
		{-v1alpha1.MaxPriority, v1alpha1.MaxPriority, 2 * v1alpha1.MaxPriority * Step},
		{0, v1alpha1.MaxPriority, v1alpha1.MaxPriority * Step}, {0, 12, time.Hour}, {0, 0, 0},
	} {
		events := []*v1alpha1.GitEvent{prioritized("old", 0, test.old)}
		waited := time.Duration(-1)
		for now := minute; now < 48*60*minute; now += minute { // each minute one comes, and one slot falls free
			events = append(events, prioritized(fmt.Sprint("urgent-", now), now, test.urgent))
			first := Queue(events, nil)[0].Event
			events = slices.DeleteFunc(events, func(e *v1alpha1.GitEvent) bool { return e.Name == first })
			if first == "old" {
				waited = time.Duration(now) * time.Second
				break
			}
		}
		if waited < 0 || waited > test.bound+time.Minute || waited < test.bound-time.Minute {
			t.Errorf("with priority %d among %d it has waited for %v, want about %v", test.old, test.urgent, waited, test.bound)
		}
	}
}

// The clock of one receiver is a day ahead, and that of another one a day behind. Their deliveries
// are ordered by when they were recorded.
func TestReceiverClockDoesNotChangeTheOrder(t *testing.T) {
	t.Parallel()
	const day = 24 * 60 * 60
	var events []*v1alpha1.GitEvent
	for i, wrong := range []int{0, day, 0, -day, 0} {
		e := prioritized(fmt.Sprint("e", i), i+wrong, 0)
		e.CreationTimestamp = prioritized("", i, 0).Spec.ReceivedAt
		events = append(events, e)
	}
	if got := fmt.Sprint(names(Queue(events, nil))); got != "[e0 e1 e2 e3 e4]" {
		t.Errorf("the line is %s", got)
	}
}

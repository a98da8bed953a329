// SPDX-License-Identifier: Apache-2.0

// Package runqueue orders the runs that wait for a slot of a Repository with a concurrency_limit.
// Which runs wait follows from the unsettled events; which have a slot is in the status of the
// Repository (docs/adr/0041).
package runqueue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Step is the head start of one unit of settings.queue_priority: a run with priority 12 has the
// position that it would have with priority 0 if its delivery had been recorded an hour earlier. So
// the order does not change while runs wait, and no run is overtaken by one that was recorded more
// than 2*MaxPriority*Step later (docs/adr/0044).
const Step = 5 * time.Minute

// Queue returns the runs of a Repository's unsettled events that may be created, are not cancelled
// and have no slot, in the order in which they get one:
//
//   - by the second in which the delivery was recorded, minus the head start of the event's
//     priority;
//   - then by when the delivery was recorded, and by the event's name, which is random;
//   - runs of one event by name, as Pipelines-as-Code does, with numbers as numbers ("test-2"
//     before "test-10").
func Queue(events []*v1alpha1.GitEvent, slots []pacv1alpha1.Slot) []pacv1alpha1.Slot {
	granted := map[pacv1alpha1.Slot]bool{}
	for _, slot := range slots {
		granted[pacv1alpha1.Slot{Run: slot.Run, Event: slot.Event}] = true
	}
	events = slices.Clone(events)
	slices.SortFunc(events, func(a, b *v1alpha1.GitEvent) int {
		return cmp.Or(rank(a).Compare(rank(b)), a.RecordedAt().Compare(b.RecordedAt()), cmp.Compare(a.Name, b.Name))
	})
	var queue []pacv1alpha1.Slot
	for _, event := range events {
		first := len(queue)
		for i := range event.Status.Runs {
			run := &event.Status.Runs[i]
			if slot := (pacv1alpha1.Slot{Run: run.Key(), Event: event.Name}); run.Creatable() && !granted[slot] &&
				!event.Settled() && event.Cancelled(run.Pipeline) == nil {
				queue = append(queue, slot)
			}
		}
		slices.SortFunc(queue[first:], func(a, b pacv1alpha1.Slot) int { return natural(a.Run, b.Run) })
	}
	return queue
}

// Sorted returns runs of one event in the order in which they get slots.
func Sorted(runs []v1alpha1.Run) []v1alpha1.Run {
	return slices.SortedFunc(slices.Values(runs), func(a, b v1alpha1.Run) int { return natural(a.Key(), b.Key()) })
}

// Priority returns the priority of an event, 0 if it has none.
func Priority(event *v1alpha1.GitEvent) int32 {
	if event.Status.Plan == nil || event.Status.Plan.Priority == nil {
		return 0
	}
	return max(-v1alpha1.MaxPriority, min(v1alpha1.MaxPriority, *event.Status.Plan.Priority))
}

// rank returns when an event without a priority would have been recorded that has the same
// position.
func rank(event *v1alpha1.GitEvent) time.Time {
	return event.RecordedAt().Add(-time.Duration(Priority(event)) * Step)
}

// natural compares names with numbers as numbers. Leading zeros do not count unless nothing else
// differs.
func natural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		m, n := digits(x), digits(y)
		if m == 0 || n == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		p, q := strings.TrimLeft(x[:m], "0"), strings.TrimLeft(y[:n], "0")
		if differs := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q)); differs != 0 {
			return differs
		}
		x, y = x[m:], y[n:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// digits returns how many digits a text begins with.
func digits(text string) int {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return i
		}
	}
	return len(text)
}

// places returns the ends of the ranges in which a check shows its position. Each change of a check
// is a request to the Git service: so each of fifty waiting runs costs eight requests, not fifty.
func places() []int { return []int{1, 2, 3, 5, 10, 20, 50, 100} }

// Position returns the text for a position, from 1 on: "position 2", "position 6 to 10".
func Position(place int) string {
	before := 0
	for _, last := range places() {
		switch {
		case place > last:
			before = last
		case last == before+1:
			return fmt.Sprintf("position %d", last)
		default:
			return fmt.Sprintf("position %d to %d", before+1, last)
		}
	}
	return fmt.Sprintf("a position after %d", before)
}

// inQueue follows the position in the text for a run that waits.
const inQueue = " in the queue."

// Shows reports whether the text of a run that waits still shows its position.
func Shows(text string, place int) bool { return strings.HasPrefix(text, Position(place)+inQueue) }

// maxNames is how many runs with a slot the text of a waiting run names.
const maxNames = 5

// Waiting describes a run that waits: its Repository, how many runs of that may run at once, the
// run's position from 1 on, and its priority.
type Waiting struct {
	Repository   string
	Limit, Place int
	Priority     int32
}

// Have is the text between the position and the names of the runs that have the slots.
const Have = ". Running now: "

// Says returns the text for a run that waits: its position, the limit, and which runs have the
// slots, if any. It returns the text before if position and limit are the same, because the runs
// with slots change with every run that ends.
func Says(before string, at Waiting, slots []pacv1alpha1.Slot) string {
	head := fmt.Sprintf("%s%s Repository %s runs at most %d PipelineRuns at a time (concurrency_limit)",
		Position(at.Place), inQueue, at.Repository, at.Limit)
	if at.Priority != 0 {
		head += fmt.Sprintf("; this one has priority %d", at.Priority)
	}
	if strings.HasPrefix(before, head+Have) {
		return before
	}
	if len(slots) == 0 {
		return head
	}
	var names []string
	for _, slot := range slots[:min(len(slots), maxNames)] {
		names = append(names, slot.Run)
	}
	text := head + Have + strings.Join(names, ", ")
	if more := len(slots) - maxNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// SPDX-License-Identifier: Apache-2.0

// Package slots is the order in which the runs of a Repository with a concurrency_limit get its
// slots. It knows no client: what waits follows from the open events, and who has a slot is in the
// status of the Repository (docs/adr/0041).
package slots

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Step is what one of settings.queue_priority counts: a run with priority 12 stands where it would
// stand with priority 0 if its delivery had been recorded an hour earlier. All that wait grow old
// alike, so their order does not change while they wait, and nobody is overtaken by a run that was
// recorded more than 2*MaxPriority*Step later (docs/adr/0044).
const Step = 5 * time.Minute

// Line returns the runs of a Repository's open events that may be created and have no slot, in the
// order in which they get one: by when the delivery was recorded, to the second, which the event's
// priority moves; then by that time itself and by the event's name, which is random; and those of
// one event as Pipelines-as-Code orders them, by name, with numbers as numbers ("test-2" before
// "test-10").
func Queue(events []*v1alpha1.GitEvent, slots []pacv1alpha1.Slot) []pacv1alpha1.Slot {
	granted := map[pacv1alpha1.Slot]bool{}
	for _, slot := range slots {
		granted[pacv1alpha1.Slot{Run: slot.Run, Event: slot.Event}] = true
	}
	events = slices.Clone(events)
	slices.SortFunc(events, func(a, b *v1alpha1.GitEvent) int {
		return cmp.Or(turn(a).Compare(turn(b)), a.RecordedAt().Compare(b.RecordedAt()), cmp.Compare(a.Name, b.Name))
	})
	var line []pacv1alpha1.Slot
	for _, event := range events {
		first := len(line)
		for i := range event.Status.Runs {
			run := &event.Status.Runs[i]
			if slot := (pacv1alpha1.Slot{Run: run.Name, Event: event.Name}); run.Creatable() && !granted[slot] &&
				!event.Settled() {
				line = append(line, slot)
			}
		}
		slices.SortFunc(line[first:], func(a, b pacv1alpha1.Slot) int { return natural(a.Run, b.Run) })
	}
	return line
}

// Priority is that of an event, 0 if it has none.
func Priority(event *v1alpha1.GitEvent) int32 {
	if event.Status.Plan == nil || event.Status.Plan.Priority == nil {
		return 0
	}
	return max(-v1alpha1.MaxPriority, min(v1alpha1.MaxPriority, *event.Status.Plan.Priority))
}

// turn is when an event without a priority that stands at the same place would have been recorded.
func turn(event *v1alpha1.GitEvent) time.Time {
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

// digits is how many digits a text begins with.
func digits(text string) int {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return i
		}
	}
	return len(text)
}

// places returns the last ones of the ranges in which a check tells its place. Each change of a
// check is a request to the Git service: so fifty that wait cost eight of them each, and not fifty.
func places() []int { return []int{1, 2, 3, 5, 10, 20, 50, 100} }

// Place says where in the line a run is, from 1 on: "place 2", "places 6 to 10".
func Position(place int) string {
	before := 0
	for _, last := range places() {
		switch {
		case place > last:
			before = last
		case last == before+1:
			return fmt.Sprintf("place %d", last)
		default:
			return fmt.Sprintf("places %d to %d", before+1, last)
		}
	}
	return fmt.Sprintf("a place after %d", before)
}

// inLine is what follows the place in what a run that waits is told.
const inLine = " in the line"

// Shows reports whether what a run that waits was told names its place still.
func Shows(text string, place int) bool { return strings.HasPrefix(text, Position(place)+inLine) }

// maxNames is how many runs that have a slot are named to one that waits.
const maxNames = 5

// Standing is where a run stands: in the line of which Repository, how many of that may run at
// once, its place from 1 on, and its priority.
type Waiting struct {
	Repository   string
	Limit, Place int
	Priority     int32
}

// Have is what stands between the place and the names of the runs that have the slots.
const Have = "; the slots have "

// Says is what a run that waits is told: its place, the limit, and which runs have the slots. Of
// what stands already the same place and limit are left as they are: who has the slots changes with
// every run that ends. Before anybody has one it names nobody.
func Says(before string, at Waiting, slots []pacv1alpha1.Slot) string {
	head := fmt.Sprintf(
		"%s%s of Repository %s, of which %d may run at once",
		Position(at.Place),
		inLine,
		at.Repository,
		at.Limit,
	)
	if at.Priority != 0 {
		head += fmt.Sprintf(", with priority %d", at.Priority)
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

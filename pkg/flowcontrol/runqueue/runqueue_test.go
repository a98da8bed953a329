// SPDX-License-Identifier: Apache-2.0

package runqueue

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func event(name string, received int, runs ...v1alpha1.Run) *v1alpha1.GitEvent {
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, received, 0, time.UTC))
	return &v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GitEventSpec{ReceivedAt: at},
		Status: v1alpha1.GitEventStatus{Runs: runs},
	}
}

// Older events come first; runs of one event are ordered by name, numbers as numbers. Runs that
// exist, have finished, are refused or unresolved, or have a slot already are not in the queue.
func TestQueueOrder(t *testing.T) {
	t.Parallel()
	line := Queue([]*v1alpha1.GitEvent{
		event("z", 2, v1alpha1.Run{Name: "late"}),
		event("b", 1, v1alpha1.Run{Name: "t-10"}, v1alpha1.Run{Name: "t-2"}, v1alpha1.Run{Name: "t-02a"},
			v1alpha1.Run{Name: "t"},
			v1alpha1.Run{Name: "slot"}, v1alpha1.Run{Name: "there", UID: "uid"}, v1alpha1.Run{Name: "open", Unresolved: true},
			v1alpha1.Run{Name: "bad", Refused: &v1alpha1.Refusal{}},
			v1alpha1.Run{Name: "ended", Result: &v1alpha1.Result{}}),
		event("a", 1, v1alpha1.Run{Name: "slot"}),
	}, []pacv1alpha1.Slot{{Run: "slot", Event: "b", FreeAt: &metav1.Time{}}})
	var got []string
	for _, slot := range line {
		got = append(got, slot.Event+"/"+slot.Run)
	}
	if want := []string{"a/slot", "b/t", "b/t-2", "b/t-02a", "b/t-10", "z/late"}; !slices.Equal(got, want) {
		t.Errorf("the line is %q, want %q", got, want)
	}
}

// The order of names is one: whichever way two are compared.
func TestNaturalOrderIsTotal(t *testing.T) {
	t.Parallel()
	sorted := []string{"", "0", "00", "1", "9", "010", "10", "a", "a0", "a1b", "a01c", "a2", "a10", "b"}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := natural(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q and %q compare as %d", a, b, got)
			}
		}
	}
}

// Fifty places cost a check eight changes, and a hundred more one.
func TestPositionsAreCoarse(t *testing.T) {
	t.Parallel()
	for place, want := range map[int]string{
		1: "position 1", 2: "position 2", 3: "position 3", 4: "position 4 to 5", 5: "position 4 to 5", 6: "position 6 to 10",
		50: "position 21 to 50", 101: "a position after 100",
	} {
		if got := Position(place); got != want {
			t.Errorf("%d is %q, want %q", place, got, want)
		}
	}
	changes, before := 0, ""
	for place := 150; place > 0; place-- {
		if now := Position(place); now != before {
			changes, before = changes+1, now
		}
	}
	if changes != len(places())+1 {
		t.Errorf("%d changes, want %d", changes, len(places())+1)
	}
}

func at(limit, place int) Waiting {
	return Waiting{Repository: "team/app", Limit: limit, Place: place}
}

// The text of a waiting run changes with its position and the limit, not with the runs that have
// the slots.
func TestTextChangesWithPositionAndLimitOnly(t *testing.T) {
	t.Parallel()
	slots := []pacv1alpha1.Slot{{Run: "a"}, {Run: "b"}, {Run: "c"}, {Run: "d"}, {Run: "e"}, {Run: "f"}, {Run: "g"}}
	first := Says("", at(2, 7), slots)
	if want := "position 6 to 10 in the queue. Repository team/app runs at most 2 PipelineRuns at a time (concurrency_limit). Running now: a, b, c, d, e and 2 more"; first != want {
		t.Errorf("it says %q, want %q", first, want)
	}
	if again := Says(first, at(2, 6), slots[5:]); again != first {
		t.Errorf("in the same range it says %q", again)
	}
	for name, other := range map[string]string{
		"another range": Says(first, at(2, 5), slots[5:]), "another limit": Says(first, at(20, 6), slots[5:]),
	} {
		if !strings.HasSuffix(other, ". Running now: f, g") {
			t.Errorf("%s: it says %q", name, other)
		}
	}
	urgent := at(2, 1)
	urgent.Priority = 10
	if got, want := Says("", urgent, slots[:1]),
		"position 1 in the queue. Repository team/app runs at most 2 PipelineRuns at a time (concurrency_limit); this one has priority 10. Running now: a"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	none := Says("", at(2, 1), nil)
	if strings.Contains(none, "now") || Says(none, at(2, 1), nil) != none ||
		!strings.Contains(Says(none, at(2, 1), slots), ". Running now: a") {
		t.Errorf("without slots it says %q", none)
	}
}

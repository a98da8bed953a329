// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"slices"
	"testing"
	"time"
)

// numbers are those of acts.
func numbers(acts []Act) (out []int) {
	for _, act := range acts {
		out = append(out, act.N)
	}
	return out
}

// A schedule shrinks to the acts that are needed, wherever they are; when the time is over, to the smallest that broke anything.
func TestAScheduleShrinks(t *testing.T) {
	acts := Schedule(seed, time.Minute)
	last := len(acts)
	for _, needed := range [][]int{{1}, {last}, {17, 18}, {2, last - 1}, {5, 60, 100}, {1, last / 2, last/2 + 1, last}} {
		replays := 0
		breaks := func(_ context.Context, part []Act) bool {
			replays++
			return !slices.ContainsFunc(needed, func(n int) bool { return !slices.Contains(numbers(part), n) })
		}
		if got := numbers(Shrink(t.Context(), acts, breaks)); !slices.Equal(got, needed) {
			t.Errorf("it shrinks to %v after %d replays, want %v", got, replays, needed)
		}
		ctx, cancel := context.WithCancel(t.Context())
		first := Shrink(ctx, acts, func(_ context.Context, part []Act) bool { cancel(); return true })
		if half := (last + 1) / 2; len(first) != half {
			t.Errorf("with time for one replay it has %d acts, want %d", len(first), half)
		}
	}
	if got := Shrink(t.Context(), acts, func(context.Context, []Act) bool { return false }); len(got) != last {
		t.Errorf("what never breaks again shrinks to %d acts", len(got))
	}
}

// What is left of a schedule is played without long waits, and not faster than it was: an act begins as long after the one before
// as it did, and no sooner after the end of all before than a rolling restart needs.
func TestAPartIsPlayedWithoutWaits(t *testing.T) {
	second := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	got := Compact([]Act{{At: second(60)}, {At: second(61), Lasts: second(5)}, {At: second(62)}, {At: second(67)}, {At: second(90)}, {At: second(93)}})
	for i, want := range []float64{3, 4, 5, 10, 13, 16} {
		if got[i].At != second(want) {
			t.Errorf("act %d is at %v, want %vs", i, got[i].At, want)
		}
	}
}

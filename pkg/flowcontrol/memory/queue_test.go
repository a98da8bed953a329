// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// waiting is a Budget, the events that it has woken, and the time.
type waiting struct {
	*Budget

	t     *testing.T
	woken []string
	now   time.Time
}

func newWaiting(t *testing.T) *waiting {
	w := &waiting{t: t, now: time.Unix(0, 0)}
	w.Budget = NewBudget(func() time.Time { return w.now }, func() {},
		func(event string, _ time.Duration) { w.woken = append(w.woken, event) })
	return w
}

// want reserves memory for an event that has none, or expects that the event is queued.
func (w *waiting) want(taken bool, event, owner string, more int) {
	w.t.Helper()
	if got := w.Reserve(event, owner, more, 0); got != taken {
		w.t.Fatalf("%s of %s finds room for %d MiB: %t, want %t", event, owner, more>>20, got, taken)
	}
}

func (w *waiting) wantWoken(want string) {
	w.t.Helper()
	if got := strings.Join(w.woken, " "); got != want {
		w.t.Fatalf("%q are woken, want %q", got, want)
	}
	w.woken = nil
}

// Refused events are woken when there is enough memory for them, in order, and no more of them than
// the memory is enough for.
func TestRefusedEventsAreWokenInOrder(t *testing.T) {
	t.Parallel()
	w := newWaiting(t)
	const large = MaxPart
	for _, owner := range []string{"one", "two", "three"} {
		w.want(true, "first-of-"+owner, owner, large)
	}
	for _, event := range []string{"a", "b", "a"} { // its position does not change when it is refused again
		w.want(false, event, "four", large)
	}
	if !w.Queued("a") || !w.Queued("b") || w.Queued("first-of-one") {
		t.Error("a refused event is not queued, or another one is")
	}
	w.Release("first-of-one", "one", large/2)
	w.Release("first-of-one", "one", 0)
	w.wantWoken("") // there is half of what they need
	w.Release("first-of-one", "one", large/2)
	w.Release("first-of-two", "two", large)
	w.wantWoken("a b")
	if w.Queued("b") || w.Queued("a") {
		t.Error("they were woken, and are not let in")
	}
	w.want(true, "b", "four", large)
	w.want(true, "a", "four", large)
	if len(w.queue) != 0 || len(w.reserved) != 0 || w.left != forSmall {
		t.Errorf("%d stand in line, for %d room is kept, and %d MiB are left", len(w.queue), len(w.reserved), w.left>>20)
	}
}

// S6: whatever two owners request, a third one's large plan is served. No other event gets the
// memory that is reserved for it, or that it still waits for.
func TestReservedMemoryIsNotGivenToOthers(t *testing.T) {
	t.Parallel()
	w := newWaiting(t)
	w.want(true, "loud-0", "loud", 80<<20)
	w.want(true, "shrill-0", "shrill", 80<<20)
	for n := 1; n < 10; n++ {
		w.want(false, fmt.Sprint("loud-", n), "loud", 80<<20)
	}
	w.want(false, "quiet", "quiet", 80<<20)
	for n := 1; n < 10; n++ {
		w.want(false, fmt.Sprint("shrill-", n), "shrill", 80<<20)
	}
	w.Release("loud-0", "loud", 80<<20)
	w.wantWoken("loud-1") // it was first
	w.want(false, "loud-10", "loud", 9<<20)
	w.want(false, "other", "other", 9<<20) // there is as much, and the next one waits for more
	w.Release("shrill-0", "shrill", 80<<20)
	w.wantWoken("quiet") // before all others of both
	w.want(false, "shrill-10", "shrill", 80<<20)
	w.want(true, "loud-1", "loud", 80<<20)
	if !w.Reserve("quiet", "quiet", 5<<20, 0) || !w.Reserve("quiet", "quiet", 64<<20, 5<<20) {
		t.Fatal("the room that was kept for it is taken")
	}
	w.Release("quiet", "quiet", 69<<20)
	w.wantWoken("shrill-1 other") // loud has another reservation, and there is memory left next to both
}

// A large request is served although small ones arrive all the time. 64 MiB are reserved for small
// ones.
func TestSmallRequestsDoNotStarveALargeOne(t *testing.T) {
	t.Parallel()
	w := newWaiting(t)
	for n := range Shared / small {
		w.want(true, fmt.Sprint("little-", n), fmt.Sprint("team-", n%4), small)
	}
	w.want(false, "large", "quiet", 80<<20)
	w.want(false, "little", "team-0", small)
	for n := range Shared/small - 1 {
		w.Release(fmt.Sprint("little-", n), fmt.Sprint("team-", n%4), small)
		if strings.Contains(strings.Join(w.woken, " "), "large") {
			if held := Shared/small - 1 - n; held < forSmall/small {
				t.Errorf("it is woken when %d little ones are left", held)
			}
			return
		}
		w.Reserve(fmt.Sprint("next-", n), fmt.Sprint("team-", n%4), small, 0)
		for _, event := range w.woken {
			w.Reserve(event, "team-0", small, 0)
		}
		w.woken = nil
	}
	t.Error("it is never woken")
}

// A reservation expires if its event is not reconciled. It is released at once if the event is
// removed.
func TestReservationExpires(t *testing.T) {
	t.Parallel()
	w := newWaiting(t)
	w.want(true, "first", "one", MaxEvent)
	for _, event := range []string{"gone", "late", "next", "last"} {
		w.want(false, event, event, MaxEvent)
	}
	w.Remove("gone")
	w.Release("first", "one", MaxEvent)
	w.wantWoken("late")
	w.now = w.now.Add(reservedFor)
	if !w.Queued("next") {
		t.Error("room is kept for less than it takes to come")
	}
	w.now = w.now.Add(1)
	w.Queued("next")
	w.wantWoken("next")
	w.want(false, "late", "late", MaxEvent)
	w.Remove("next")
	w.wantWoken("last")
	w.Remove("last")
	w.wantWoken("late")
}

// A reconcile that ends before it uses the reservation does not lose it; one that has used some of
// it releases the rest.
func TestReservationLastsUntilItIsUsed(t *testing.T) {
	t.Parallel()
	w := newWaiting(t)
	w.want(true, "first", "one", MaxEvent)
	if !w.Reserve("second", "two", 5<<20, 0) || w.Reserve("second", "two", MaxPart+1<<20, 5<<20) {
		t.Fatal("there is room for two")
	}
	w.Release("first", "one", MaxEvent)
	w.wantWoken("second")
	w.Release("second", "two", 5<<20) // of the attempt that found no room
	w.want(false, "third", "three", MaxEvent)
	w.want(true, "second", "two", 5<<20)
	w.wantWoken("")
	w.Release("second", "two", 5<<20)
	w.wantWoken("third")
}

// An event that waits for a large reservation stays queued for it when a small one is refused in
// the same reconcile: some calls are concurrent.
func TestSmallRequestDoesNotReplaceALargeOne(t *testing.T) {
	t.Parallel()
	w := newWaiting(t)
	w.want(true, "first", "one", MaxEvent)
	for n := range forSmall / small {
		w.want(true, fmt.Sprint("little-", n), "two", small)
	}
	w.want(false, "large", "three", MaxEvent)
	w.want(false, "large", "three", 1<<20)
	w.want(false, "next", "four", MaxEvent)
	w.Release("little-0", "two", small)
	w.wantWoken("") // there is no room for all that it needs
	w.Release("first", "one", MaxEvent)
	w.wantWoken("large")
	w.want(true, "large", "three", MaxEvent)
}

// Small requests that are served do not move their owner's large one behind those of others: it
// would wait as long as they come.
func TestSmallRequestsDoNotDelayTheirOwnersLargeOne(t *testing.T) {
	t.Parallel()
	w := newWaiting(t)
	w.want(true, "first", "one", MaxEvent)
	for n := range forSmall / small {
		w.want(true, fmt.Sprint("little-", n), "two", small)
	}
	w.want(false, "large", "busy", 112<<20)
	w.want(false, "other", "loud", 112<<20)
	w.want(false, "push", "busy", small)
	w.Release("little-0", "two", small)
	w.wantWoken("push")
	w.Release("first", "one", MaxEvent)
	w.wantWoken("large")
}

// When the reservation of a small request expires, the next small one is woken, also if a large
// request takes more than that at the same moment.
func TestExpiredSmallReservationWakesASmallRequest(t *testing.T) {
	t.Parallel()
	w := newWaiting(t)
	w.want(true, "first", "one", 96<<20)
	for n := range forSmall / small {
		w.want(true, fmt.Sprint("little-", n), "two", small)
	}
	w.want(false, "large", "four", 112<<20) // later requests do not get the memory that is collected for it
	w.want(false, "late", "five", small)
	w.Release("little-0", "two", small)
	w.wantWoken("late")
	w.want(false, "waits", "six", small)
	w.now = w.now.Add(reservedFor + 1)
	if !w.Reserve("first", "one", small+1, 96<<20) {
		t.Fatal("one that was let in does not go on")
	}
	w.wantWoken("waits")
}

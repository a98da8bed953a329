// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/tombstone"
)

// With 50,000 events a day for four days every pass ends. What stays is bounded, and so are the
// calls: one list for 500 objects, one read of a page of tombstones, four calls for an evicted
// event.
func TestFiftyThousandEventsADay(t *testing.T) {
	t.Parallel()
	const perDay, days, passes, keep = 50_000, 4, 2, 10_000
	w := newEnv(t)
	all := 0
	for range days {
		for range passes {
			for range 4 { // in four bursts
				w.fill(perDay / passes / 4)
				w.later(24 * time.Hour / passes / 4)
				all += perDay / passes / 4
			}
			w.calls = map[string]int{}
			w.pass()
			total := 0
			for _, n := range w.calls {
				total += n
			}
			limit := 2*(keep+perDay/passes)/page + 10 + 4*(perDay/passes) + v1alpha1.MaxTombstones/16
			if len(w.events) > keep || total > limit {
				t.Fatalf("%d events are kept, %d calls made (limit %d): %v", len(w.events), total, limit, w.calls)
			}
			if minutes := len(w.sweep.ages.perMinute); minutes > days*24*60 {
				t.Fatalf("%d minutes are remembered", minutes)
			}
		}
	}
	living, bytes := 0, 0
	for _, p := range w.pages {
		living += tombstone.Count(p, w.clock.Now())
		for _, line := range p.Entries {
			bytes += len(line) + len(`"",`)
		}
	}
	t.Logf("of %d events %d stubs and %d tombstones are left, %d bytes each in %d pages; the last pass made %v", all,
		len(w.events), living, bytes/living, len(w.pages), w.calls)
	if got := len(w.events) + living; got < all-perDay/passes {
		t.Errorf("%d of %d events are remembered", got, all)
	}
}

// Each reconcile ends after its time, and the next one goes on, in this process or another.
func TestBacklogTakesSeveralReconciles(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.fill(20_000)
	w.later(5 * 24 * time.Hour)
	w.perCall = 10 * time.Millisecond
	if n := w.pass(); n < 20 || n > 60 {
		t.Errorf("the pass took %d reconciles of %v, want about 40", n, workFor)
	}
	if len(w.events) != 0 {
		t.Errorf("%d events are left", len(w.events))
	}
}

// A pass whose list is interrupted continues from there, and counts nothing twice.
func TestPassGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	expired := func(token string) error {
		e := apierrors.NewResourceExpired("too old")
		e.ErrStatus.ListMeta = metav1.ListMeta{Continue: token}
		return e
	}
	for name, interruption := range map[string]func(token string) error{
		"the API server is unavailable": func(string) error {
			return apierrors.NewServiceUnavailable("etcd")
		},
		"the list is too old, and may go on with newer objects": expired,
		"the list is too old, and has to begin again":           func(string) error { return expired("") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			w.fill(2000)
			lists, interrupted := 0, false
			w.answer = func(call, token string) error {
				if call != "list gitevents" || token == "" {
					return nil
				}
				if lists++; lists == 2 {
					interrupted = true
					return interruption(token)
				}
				return nil
			}
			w.pass()
			if !interrupted || w.sweep.found.stubs != 2000 {
				t.Errorf("interrupted: %v, %d stubs counted, want 2000", interrupted, w.sweep.found.stubs)
			}
			if name == "the API server is unavailable" && lists != 4 {
				t.Errorf("%d lists go on, want three and the one that failed", lists)
			}
		})
	}
}

// The next attempt starts at the failed object, and repeats no earlier one.
func TestFailedObjectIsRetried(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.fill(100)
	w.later(5 * 24 * time.Hour)
	failed := false
	w.answer = func(call, _ string) error {
		if call == "delete gitevents" && w.calls[call] == 50 && !failed {
			failed = true
			return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
		}
		return nil
	}
	w.pass()
	if !failed || len(w.events) != 0 || w.calls["delete gitevents"] != 101 {
		t.Errorf("%d events are left after %d deletes, want none after 101", len(w.events), w.calls["delete gitevents"])
	}
}

func TestOldestEventsAreFoundByTheMinute(t *testing.T) {
	t.Parallel()
	at := func(minutes ...int) (all []time.Time) {
		for _, m := range minutes {
			all = append(all, time.Date(2026, 1, 1, 0, m, 0, 0, time.UTC))
		}
		return all
	}
	for name, c := range map[string]struct {
		created []time.Time
		keep    int
		oldest  int
	}{
		"fewer than the cap":             {at(1, 2, 3), 5, 0},
		"as many":                        {at(1, 2, 3), 3, 0},
		"whole minutes":                  {at(1, 1, 2, 3), 2, 2},
		"a part of a minute":             {at(1, 1, 1, 2), 2, 2},
		"all of them in the same minute": {at(7, 7, 7, 7), 1, 3},
		"the newest come first":          {at(4, 3, 2, 1), 1, 3},
	} {
		a := ages{keep: c.keep, perMinute: map[int64]int{}}
		for _, created := range c.created {
			a.add(created)
		}
		oldest, rest := above(&a, c.created, func(t *time.Time) time.Time { return *t })
		if len(oldest) != c.oldest || rest != 0 && c.oldest > 0 {
			t.Errorf("%s: %v are above, rest %d; want %d", name, oldest, rest, c.oldest)
		}
	}
}

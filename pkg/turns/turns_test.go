// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// desk is Turns of so many workers at a time that does not pass, and the shares that were refused.
func desk(workers int) (*Turns, *[]string) {
	var refused []string
	return New(workers, func() time.Time { return time.Unix(0, 0) }, func(share string) { refused = append(refused, share) }), &refused
}

// visits is how many turns at a Git service there are for visits that come one after the other, and how the next one ends.
func visits(t *Turns, of func(n int) Visit) (n int) {
	for {
		if _, err := t.Visit(of(n)); err != nil {
			return n
		}
		n++
	}
}

// S6: of 16 workers a tenant holds four however many of its hosts hang, three if it is one, and each of the others has its own
// share.
func TestATenantsHostsThatHangHoldAQuarter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of      func(n int) Visit
		want    int
		refused string
	}{
		"one tenant, many hosts":                    {func(n int) Visit { return Visit{"team", fmt.Sprintf("git-%d.example", n), 0} }, 4, Namespace},
		"one tenant, one host":                      {func(int) Visit { return Visit{"team", "git.example", 0} }, 3, NamespaceHost},
		"many tenants, one host":                    {func(n int) Visit { return Visit{fmt.Sprint("team-", n), "git.example", 0} }, 8, Installation},
		"many tenants, one installation of the App": {func(n int) Visit { return Visit{fmt.Sprint("team-", n), "github.com", 42} }, 8, Installation},
		"many installations, one host":              {func(n int) Visit { return Visit{fmt.Sprint("team-", n), "github.com", int64(n)} }, 12, Host},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, refused := desk(16)
			if got := visits(s, c.of); got != c.want || len(*refused) != 1 || (*refused)[0] != c.refused {
				t.Errorf("%d turns, refused %v, want %d and %s", got, *refused, c.want, c.refused)
			}
			if got := visits(s, func(n int) Visit { return Visit{"other", fmt.Sprintf("other-%d.example", n), 7} }); got != 4 {
				t.Errorf("a tenant at other hosts has %d turns, want its quarter", got)
			}
		})
	}
}

// One tenant leaves turns of a host, and of an installation, that it shares with others.
func TestOneTenantDoesNotTakeASharedHost(t *testing.T) {
	t.Parallel()
	s, _ := desk(16)
	visits(s, func(int) Visit { return Visit{"team", "git.example", 0} })
	if got := visits(s, func(int) Visit { return Visit{"other", "git.example", 0} }); got != 3 {
		t.Errorf("the other tenant of the host has %d turns, want 3", got)
	}
}

// Whatever is done for a namespace takes half of the workers at most, however few they are.
func TestANamespacesWorkTakesHalf(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int]int{16: 8, 4: 2, 1: 1} {
		s, refused := desk(workers)
		n := 0
		for ; n < 100; n++ {
			if _, err := s.Begin("team"); err != nil {
				break
			}
		}
		if n != want || (*refused)[0] != Work {
			t.Errorf("of %d workers %d are for one namespace, want %d", workers, n, want)
		}
		if _, err := s.Begin("other"); err != nil {
			t.Errorf("another namespace: %v", err)
		}
	}
}

// A visit that finds one of its places taken takes none of the others, and what nobody has any more is forgotten: hosts come
// and go as long as the process lives.
func TestTaken(t *testing.T) {
	t.Parallel()
	s, _ := desk(4)
	release, err := s.Visit(Visit{"team", "a.example", 0})
	if err != nil {
		t.Fatal(err)
	}
	before := s.Taken()
	if diff := cmp.Diff(map[string]int{"namespace team": 1, "namespace_host team at a.example": 1, "installation a.example/0": 1, "host a.example": 1}, before); diff != "" {
		t.Error(diff)
	}
	_, err = s.Visit(Visit{"team", "b.example", 0})
	if f := fault.Of(err); f == nil || f.Class != fault.Throttled || f.Reason != fault.ReasonBusy {
		t.Errorf("a namespace without a turn is told %v", err)
	}
	if diff := cmp.Diff(before, s.Taken()); diff != "" {
		t.Error(diff)
	}
	if release(); len(s.Taken()) != 0 {
		t.Errorf("nobody has a turn, and %v is remembered", s.Taken())
	}
}

// However many events wait for a host that hangs, 20 of them try again in a second. Neither the same namespace's events at
// another host nor another namespace's stand in that line, and whoever could not even begin stands in none.
func TestWhoeverFindsNoTurnComesBackOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s, _ := desk(16)
	visits(s, func(int) Visit { return Visit{"team", "git.example", 0} })
	after := func(v Visit) time.Duration {
		_, err := s.Visit(v)
		return fault.Of(err).RetryAfter
	}
	for n := range 500 {
		if got, want := after(Visit{"team", "git.example", 0}), Retry+time.Duration(n+1)*apart; got != want {
			t.Fatalf("event %d comes back after %v, want %v", n, got, want)
		}
	}
	if visits(s, func(int) Visit { return Visit{"team", "other.example", 0} }) != 1 {
		t.Fatal("no turn is left for another host")
	}
	if got := after(Visit{"team", "other.example", 0}); got != Retry+apart {
		t.Errorf("an event of another host comes back after %v", got)
	}
	for range 20 {
		if _, err := s.Begin("team"); err != nil && fault.Of(err).RetryAfter != Retry {
			t.Errorf("an event that could not begin comes back after %v", fault.Of(err).RetryAfter)
		}
	}
}

// Many workers at once never have more turns than there are.
func TestNoMoreThanTheLimitAtOnce(t *testing.T) {
	t.Parallel()
	const limit = 3
	s := New(16, time.Now, func(string) {})
	var there atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 200 {
				release, err := s.Visit(Visit{"team", "git.example", 0})
				if err != nil {
					continue
				}
				if now := there.Add(1); now > limit {
					t.Errorf("%d have a turn at once, want at most %d", now, limit)
				}
				there.Add(-1)
				release()
			}
		})
	}
	all.Wait()
	if len(s.Taken()) != 0 {
		t.Errorf("left: %v", s.Taken())
	}
}

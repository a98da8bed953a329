// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// env is a Queue with a clock that the test sets, and the events that were woken.
type env struct {
	*Queue
	t       *testing.T
	now     time.Time
	woken   []string
	late    []string // events that are woken later
	refused []string
	alarms  []alarm
	events  int
}

type alarm struct {
	at time.Time
	do func()
}

// newEnv has Git services that can take as many events as the limits allow.
func newEnv(t *testing.T, workers int) *env {
	t.Helper()
	w := &env{t: t, now: time.Unix(1_800_000_000, 0)}
	w.Queue = New(Options{
		Workers: workers, Now: func() time.Time { return w.now },
		Wake: func(event string, after time.Duration) {
			if after > 0 {
				w.late = append(w.late, fmt.Sprint(event, " after ", after))
				return
			}
			w.woken = append(w.woken, event)
		},
		Full:  func(share string) { w.refused = append(w.refused, share) },
		After: func(d time.Duration, do func()) { w.alarms = append(w.alarms, alarm{w.now.Add(d), do}) },
	})
	return w
}

// pass lets time pass and runs the alarms that are due.
func (w *env) pass(d time.Duration) {
	end := w.now.Add(d)
	for {
		due := -1
		for i, a := range w.alarms {
			if !a.at.After(end) && (due < 0 || a.at.Before(w.alarms[due].at)) {
				due = i
			}
		}
		if due < 0 {
			break
		}
		a := w.alarms[due]
		w.alarms = append(w.alarms[:due], w.alarms[due+1:]...)
		if a.at.After(w.now) {
			w.now = a.at
		}
		a.do()
	}
	w.now = end
}

// unlimited sets the window of the request's service to 1,000 calls.
func (w *env) unlimited(v Request) Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limiter.window(measured(v.Namespace, v.Host, v.Installation)).size = 1000
	return v
}

// visit returns the request of a new event, at a service with an open window.
func (w *env) visit(namespace, host string, installation int64) Request {
	w.events++
	return w.unlimited(Request{
		Event: fmt.Sprint("event-", w.events), Namespace: namespace, Host: host, Installation: installation,
	})
}

// begin acquires a worker and a service slot; it returns nil if the event is queued.
func (w *env) begin(v Request) func() {
	w.t.Helper()
	release, err := w.AcquireWorker(v, true)
	if f := fault.Of(err); f != nil &&
		(f.Class != fault.Throttled || f.Reason != fault.ReasonBusy || f.RetryAfter != Retry) {
		w.t.Fatalf("%s is told %+v, want to wait in a line", v.Event, f)
	}
	return release
}

// visits returns how many requests get a slot of their Git service, one after the other.
func (w *env) visits(of func(n int) Request) (n int) {
	for {
		if _, err := w.AcquireService(of(n)); err != nil {
			return n
		}
		n++
	}
}

// S6: of 16 workers a tenant holds at most four, however many of its hosts hang, and three if it is
// one host. Each other tenant has its own share.
func TestHangingHostsOfATenantHaveAQuarter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of      func(w *env, n int) Request
		want    int
		refused string
	}{
		"one tenant, many hosts": {
			func(w *env, n int) Request { return w.visit("team", fmt.Sprintf("git-%d.example", n), 0) }, 4, Namespace,
		},
		"one tenant, one host": {
			func(w *env, _ int) Request { return w.visit("team", "git.example", 0) }, 3, NamespaceHost,
		},
		"many tenants, one host": {
			func(w *env, n int) Request { return w.visit(fmt.Sprint("team-", n), "git.example", 0) }, 8, Installation,
		},
		"many tenants, one installation of the App": {
			func(w *env, n int) Request { return w.visit(fmt.Sprint("team-", n), "github.com", 42) }, 8, Installation,
		},
		"many installations, one host": {
			func(w *env, n int) Request { return w.visit(fmt.Sprint("team-", n), "github.com", int64(n+1)) }, 12, Host,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, 16)
			if got := w.visits(func(n int) Request { return c.of(w, n) }); got != c.want || len(w.refused) != 1 ||
				w.refused[0] != c.refused {
				t.Errorf("%d slots, refused %v, want %d and %s", got, w.refused, c.want, c.refused)
			}
			if got := w.visits(func(n int) Request {
				return w.visit("other", fmt.Sprintf("other-%d.example", n), 0)
			}); got != 4 {
				t.Errorf("a tenant at other hosts has %d slots, want its quarter", got)
			}
		})
	}
}

// A tenant cannot use all slots of a host that it shares with others.
func TestTenantLeavesSlotsOfASharedHost(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 16)
	w.visits(func(int) Request { return w.visit("team", "git.example", 0) })
	if got := w.visits(func(int) Request { return w.visit("other", "git.example", 0) }); got != 3 {
		t.Errorf("the other tenant of the host has %d slots, want 3", got)
	}
}

// The work for a namespace takes at most half of the workers, however few they are.
func TestWorkOfANamespaceHasHalf(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int]int{64: 32, 16: 8, 4: 2, 1: 1} {
		w := newEnv(t, workers)
		n := 0
		for ; n < 100; n++ {
			if _, err := w.AcquireWorker(Request{Event: fmt.Sprint(n), Namespace: "team"}, false); err != nil {
				break
			}
		}
		if n != want || w.refused[0] != Work {
			t.Errorf("of %d workers %d are for one namespace, want %d", workers, n, want)
		}
		if _, err := w.AcquireWorker(Request{Event: "other", Namespace: "other"}, false); err != nil {
			t.Errorf("another namespace: %v", err)
		}
	}
}

// A request that exceeds one limit takes no slot of the others. Unused limits are deleted,
// because hosts come and go as long as the process lives. A release counts once.
func TestInUse(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 4)
	release := w.begin(w.visit("team", "a.example", 0))
	before := w.InUse()
	if diff := cmp.Diff(map[string]int{"work team": 1, "namespace team": 1, "namespace_host team at a.example": 1,
		"installation a.example/0": 1, "host a.example": 1}, before); diff != "" {
		t.Error(diff)
	}
	v := w.visit("team", "b.example", 0)
	if w.begin(v) != nil {
		t.Fatal("a namespace has more slots than its quarter")
	}
	if diff := cmp.Diff(before, w.InUse()); diff != "" {
		t.Error(diff)
	}
	w.Remove(v.Event)
	release()
	release()
	w.nothingLeft()
}

// nothingLeft fails the test unless the queue has deleted all entries except the windows.
func (w *env) nothingLeft() {
	w.t.Helper()
	if len(w.InUse()) != 0 || len(w.Waiting()) != 0 || len(w.limiter.limits) != 0 || len(w.fifos) != 0 ||
		len(w.Queue.events) != 0 || w.queued != 0 || len(w.queuedOf) != 0 {
		w.t.Errorf("left: taken %v, waiting %v, %d shares, %d lines, %d events, %d in all", w.InUse(), w.Waiting(),
			len(w.limiter.limits), len(w.fifos), len(w.Queue.events), w.queued)
	}
}

// Concurrent workers never have more slots than the limit, and each queued event is woken in the
// end.
func TestLimitHoldsForConcurrentWorkers(t *testing.T) {
	t.Parallel()
	const limit, events = 3, 2000
	queue := make(chan string, 2*events)
	s := New(Options{
		Workers: 16, Now: time.Now, Full: func(string) {}, Wake: func(event string, _ time.Duration) { queue <- event },
	})
	var there, done atomic.Int64
	var all sync.WaitGroup
	for n := range events {
		queue <- fmt.Sprint(n)
	}
	for range 16 {
		all.Go(func() {
			for event := range queue {
				v := Request{Event: event, Namespace: "team", Host: "git.example"}
				release, err := s.AcquireWorker(v, true)
				if err != nil {
					continue
				}
				leave, err := s.AcquireService(v)
				if err != nil {
					t.Errorf("%s has a worker and no service slot", event)
				}
				if now := there.Add(1); now > limit {
					t.Errorf("%d have a slot at once, want at most %d", now, limit)
				}
				there.Add(-1)
				leave()
				release()
				if done.Add(1) == events {
					close(queue)
				}
			}
		})
	}
	all.Wait()
	if len(s.InUse()) != 0 || len(s.Waiting()) != 0 {
		t.Errorf("left: %v, waiting %v", s.InUse(), s.Waiting())
	}
}

// With 64 workers, fresh pull requests of one Repository have one slot, and started ones two, even
// if 80 of them get a push at once. Pushes, and pull requests of other Repositories, do not wait
// for them.
func TestFreshPullRequestsHaveTheirOwnLimit(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 64)
	pull := func(repository string) Request {
		v := w.visit("team", "github.com", 42)
		v.PullsOf = repository
		return v
	}
	var begun []func()
	for range 80 {
		if release := w.begin(pull("app")); release != nil {
			begun = append(begun, release)
		}
	}
	if len(begun) != 1 || w.Waiting()[PullRequests] != 79 {
		t.Fatalf("%d pull requests are worked on at once, and %v wait", len(begun), w.Waiting())
	}
	if w.begin(pull("other")) == nil || w.begin(w.visit("team", "github.com", 42)) == nil {
		t.Error("others of the namespace wait for them")
	}
	for n := range 3 {
		v := pull("app")
		if _, err := w.AcquireWorker(v, false); (err == nil) != (n < 2) {
			t.Errorf("of those that have begun, beside them: %d: %v", n+1, err)
		} else if _, visits := w.AcquireService(v); err == nil && visits != nil {
			t.Errorf("it waits at the Git service: %v", visits)
		}
	}
	begun[0]()
	if len(w.woken) != 1 || w.Waiting()[PullRequests] != 79 {
		t.Errorf("%v are woken when one has ended", w.woken)
	}
}

// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// simulation runs a Queue with a clock that jumps to the next moment. Moments at the same time
// happen in a random order.
type simulation struct {
	*Queue
	now    time.Time
	random *rand.Rand
	later  timeline
	visits map[string]Request // of events that are not served yet
	served int
	last   time.Time // when the last one was served
	alarms int       // calls of After
	most   int       // alarms that were pending at once
	ahead  int       // alarms that are pending
}

func newSimulation() *simulation {
	s := &simulation{
		now: time.Unix(1_800_000_000, 0), random: rand.New(rand.NewPCG(1, 2)),
		visits: map[string]Request{},
	}
	s.Queue = New(Options{
		Workers: 64, Now: func() time.Time { return s.now }, Full: func(string) {},
		Wake: func(event string, after time.Duration) { s.after(after, func() { s.begin(event) }) },
		After: func(d time.Duration, f func()) {
			s.alarms++
			s.ahead++
			s.most = max(s.most, s.ahead)
			s.after(d, func() { s.ahead--; f() })
		},
	})
	return s
}

func (s *simulation) after(d time.Duration, do func()) {
	heap.Push(&s.later, moment{s.now.Add(d), s.random.Uint64(), do})
}

// arrive adds an event.
func (s *simulation) arrive(v Request) {
	s.visits[v.Event] = v
	s.after(0, func() { s.begin(v.Event) })
}

// begin simulates a worker that takes an event from the workqueue. It makes four calls, which take
// some 50 ms together.
func (s *simulation) begin(event string) {
	v, open := s.visits[event]
	if !open {
		return
	}
	release, err := s.AcquireWorker(v, true)
	if err != nil {
		return
	}
	s.call(v, 4, func() {
		delete(s.visits, event)
		s.served, s.last = s.served+1, s.now
		release()
	})
}

func (s *simulation) call(v Request, calls int, done func()) {
	if calls == 0 {
		done()
		return
	}
	began := s.now
	s.after(time.Duration(6+s.random.IntN(12))*time.Millisecond, func() {
		s.Observe(v, Answer{Began: began})
		s.call(v, calls-1, done)
	})
}

// play lets time pass until end, or until no moment is left. It fails after too many alarms.
func (s *simulation) play(end time.Time, maxAlarms int) {
	for s.later.Len() > 0 && s.alarms <= maxAlarms {
		next, _ := heap.Pop(&s.later).(moment)
		if next.at.After(end) {
			return
		}
		if next.at.After(s.now) {
			s.now = next.at
		}
		next.do()
	}
}

// pullRequests are those that a bot opens in many Repositories at once.
func (s *simulation) pullRequests(repositories, each int) {
	for n := range repositories * each {
		r := n % repositories
		s.arrive(Request{
			Event: fmt.Sprint("pull-", n), Namespace: fmt.Sprint("team-", r%4), Host: "github.com", Installation: int64(1 + r%2),
			PullsOf: fmt.Sprint("app-", r),
		})
	}
}

// Pull requests of many Repositories come together. However many there are, each sets few alarms,
// and few are pending at once.
func TestAlarmsDoNotMultiply(t *testing.T) {
	t.Parallel()
	const each = 10
	for _, repositories := range []int{1, 2, 4, 8, 12, 32, 64} {
		t.Run(fmt.Sprintf("%d repositories", repositories), func(t *testing.T) {
			t.Parallel()
			s := newSimulation()
			s.pullRequests(repositories, each)
			events, began := repositories*each, s.now
			s.play(began.Add(time.Hour), 100*events)
			if s.served != events || s.alarms > 3*events {
				t.Errorf("%d of %d events were served, and %d alarms set, %d of them pending at once", s.served, events, s.alarms,
					s.most)
			}
			if s.most > events {
				t.Errorf("%d alarms were pending at once for %d events", s.most, events)
			}
		})
	}
}

// While installations wait for their rate limits, and none of their events can be served, the
// alarms do not multiply either.
func TestAlarmsOfClosedInstallationsDoNotMultiply(t *testing.T) {
	t.Parallel()
	for _, installations := range []int{1, 5, 10, 30} {
		t.Run(fmt.Sprint(installations), func(t *testing.T) {
			t.Parallel()
			s := newSimulation()
			began := s.now
			for i := range installations {
				v := Request{
					Event: fmt.Sprint("first-", i), Namespace: fmt.Sprint("team-", i), Host: "github.com", Installation: int64(i + 1),
				}
				release, err := s.AcquireWorker(v, true)
				if err != nil {
					t.Fatal(err)
				}
				s.Observe(v, Answer{Began: s.now, Closed: time.Hour - time.Duration(i)*time.Second})
				v.Event = fmt.Sprint("second-", i)
				s.arrive(v)
				release()
			}
			s.play(began.Add(2*time.Hour), 100_000)
			// The hour passes in steps of ReservedFor; each installation sets one alarm when it
			// closes and one when it opens, each event one.
			if most := int(time.Hour/ReservedFor) + 3*installations; s.alarms > most || s.served != installations {
				t.Errorf("%d alarms, want at most %d; %d of %d events were served", s.alarms, most, s.served, installations)
			}
		})
	}
}

// An alarm that an earlier one has replaced does nothing, and sets no other. While an installation
// waits for an hour, each pause between two pull requests replaces the alarm.
func TestReplacedAlarmsAreGoneSoon(t *testing.T) {
	t.Parallel()
	s := newSimulation()
	began := s.now
	v := Request{Event: "limited", Namespace: "team", Host: "github.com", Installation: 99}
	if _, err := s.AcquireWorker(v, true); err != nil {
		t.Fatal(err)
	}
	s.Observe(v, Answer{Began: s.now, Closed: time.Hour})
	const events = 2000 // at some 10 a second
	for n := range events {
		s.arrive(Request{
			Event: fmt.Sprint("pull-", n), Namespace: "other", Host: "github.com", Installation: 1, PullsOf: "app",
		})
	}
	s.play(began.Add(time.Hour), 100_000)
	if s.served != events || s.alarms > 3*events+int(time.Hour/ReservedFor) || s.most > 300 {
		t.Errorf("%d of %d events were served; %d alarms, %d of them pending at once", s.served, events, s.alarms, s.most)
	}
}

// 64 Repositories have ten pull requests each. The benchmark measures the CPU time of the alarms:
// each reads all events.
func BenchmarkPullRequestsOfManyRepositories(b *testing.B) {
	for b.Loop() {
		s := newSimulation()
		s.pullRequests(64, 10)
		began := s.now
		s.play(began.Add(time.Hour), 1_000_000)
		if s.served != 640 {
			b.Fatalf("%d events were served", s.served)
		}
		b.ReportMetric(float64(s.alarms), "alarms/op")
		b.ReportMetric(s.last.Sub(began).Seconds(), "simulated-s/op")
	}
}

// moment is a function and the time at which it is called.
type moment struct {
	at    time.Time
	order uint64
	do    func()
}

// timeline is a heap of moments, the earliest first.
type timeline []moment

func (t timeline) Len() int { return len(t) }

func (t timeline) Less(i, j int) bool {
	if t[i].at.Equal(t[j].at) {
		return t[i].order < t[j].order
	}
	return t[i].at.Before(t[j].at)
}

func (t timeline) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

func (t *timeline) Push(x any) {
	m, _ := x.(moment)
	*t = append(*t, m)
}

func (t *timeline) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

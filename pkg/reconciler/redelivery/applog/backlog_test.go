// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// timed is a service that takes its time for a page, and a receiver that says all the time that it
// has refused something: a tenant above its budget has it say so.
type timed struct {
	*world
	page  time.Duration
	heard time.Time
}

func (s *timed) Page(ctx context.Context, cursor string) ([]provider.Attempt, string, error) {
	s.clock.Step(s.page)
	if now := s.clock.Now(); now.Sub(s.heard) > 3*time.Second {
		s.process.Heard()
		s.heard = now
	}
	return s.world.Page(ctx, cursor)
}

// Of more than the ledger has room for each look reads all again. Receivers that have refused
// something meanwhile do not have it read all the time: what was missed is asked for in between.
func TestABacklogIsAskedForBetweenLooks(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	w.receive = nobody
	for n := range maxMissed + 1000 {
		w.deliver(fmt.Sprint("missed-", n), 1)
		w.clock.Step(100 * time.Millisecond)
	}
	w.receive = nil
	service := &timed{world: w, page: 300 * time.Millisecond}
	w.process.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return service, nil }
	w.run(20 * time.Minute)
	if len(w.asked) < 600 || w.pages > 20*60 {
		t.Errorf("asked for %d in twenty minutes, with %d pages", len(w.asked), w.pages)
	}
}

// github is GitHub with its published limit of 900 points a minute, of which pkg/provider lets a
// third be spent at once. A page takes one point and half a second, the fifth of it here, where a
// page is as much shorter. A redelivery takes five points and a quarter of a second.
type github struct {
	*world
	points *rate.Limiter
	posts  []time.Time
}

func (g *github) spend(points int, takes time.Duration) {
	g.clock.Step(g.points.ReserveN(g.clock.Now(), points).DelayFrom(g.clock.Now()) + takes)
}

func (g *github) Page(ctx context.Context, cursor string) ([]provider.Attempt, string, error) {
	g.spend(1, 100*time.Millisecond)
	return g.world.Page(ctx, cursor)
}

func (g *github) Redeliver(ctx context.Context, id int64) error {
	g.spend(5, 250*time.Millisecond)
	g.posts = append(g.posts, g.clock.Now())
	return g.world.Redeliver(ctx, id)
}

// What an outage kept away is there again soon: 900 deliveries within ten minutes, which GitHub's
// limits allow. Tenants take turns.
func TestManyRedeliveriesTakeAsLongAsTheServiceLimits(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	for id := range int64(3) { // each repository is another tenant's
		claim := w.claim(id + 1).DeepCopy()
		claim.Spec.Repository.Namespace = fmt.Sprint("team-", id+1)
		if err := w.claims.Update(claim); err != nil {
			t.Fatal(err)
		}
	}
	w.receive = nobody
	const many = 900
	for n := range many {
		w.deliver(fmt.Sprint("missed-", n), int64(1+min(2, n/400))) // 400, 400 and 100, the last tenant's last
		w.clock.Step(200 * time.Millisecond)
	}
	w.receive = nil
	service := &github{world: w, points: rate.NewLimiter(10, 300)}
	w.process.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return service, nil }
	w.heard()
	began := w.clock.Now()
	w.run(10 * time.Minute)
	if len(w.asked) != many || len(w.recorded) != many {
		t.Errorf("%d of %d were asked for in ten minutes, %d are recorded", len(w.asked), many, len(w.recorded))
	}
	third := 0
	for _, guid := range w.asked[:min(len(w.asked), 330)] {
		if n, _ := strconv.Atoi(strings.TrimPrefix(guid, "missed-")); n >= 800 {
			third++
		}
	}
	if third < 100 {
		t.Errorf("of the first 330 only %d are of the tenant with the fewest", third)
	}
	t.Logf("the last one after %v", service.posts[len(service.posts)-1].Sub(began))
}

// One tenant's many repositories hold up no other tenant, and take none of its room. Nor do the
// many of strangers, which count while the number of some Repository is not known.
func TestTenantsTakeTurns(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for _, crowd := range []string{"crowd", ""} {
		l := ledger{Through: now.Add(time.Hour)}
		for n := range 2 * maxMissed {
			l.Missed = append(l.Missed, missed{GUID: fmt.Sprint(n), Repository: int64(n + 1), Tenant: crowd, First: now})
		}
		for n := range 10 {
			l.Missed = append(l.Missed, missed{GUID: fmt.Sprint("other-", n), Repository: -1, Tenant: "other", First: now.Add(time.Minute)})
		}
		l.forget()
		others, line := 0, newLine()
		for at := now; at.Before(now.Add(20 * time.Second)); at = at.Add(askEvery) {
			m, due := line.next(l.Missed, at)
			if m == nil || due.After(at) {
				t.Fatalf("nothing is due: %v", due)
			}
			line.took(m, at)
			if m.Tenant == "other" {
				others++
			}
		}
		if others != 10 || len(l.Missed) != maxMissed {
			t.Errorf("with the crowd %q %d of 20 are the other's, %d are kept", crowd, others, len(l.Missed))
		}
	}
}

// The service may make an attempt late, when its queue is long, and list it where it was due.
func TestAnAttemptThatWasMadeLate(t *testing.T) {
	w := newWorld(t)
	w.deliver("first", 1)
	w.run(10 * time.Minute)
	w.deliver("second", 1)
	w.run(10 * time.Minute)
	w.receive = nobody
	w.deliver("late", 2)
	w.receive = nil
	w.log[0], w.log[1], w.log[2] = w.log[2], w.log[0], w.log[1]
	w.run(6 * time.Minute)
	w.wantRecorded("late")
}

// What the service refuses to send again holds up nothing else.
func TestRefusedRedeliveriesHoldUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	w.receive = nobody
	for n := range 20 {
		w.deliver(fmt.Sprint("odd-", n), 1)
	}
	for n := range 5 {
		w.deliver(fmt.Sprint("good-", n), 1)
	}
	w.receive = nil
	w.redeliverBy(func(id int64) error {
		if id <= 20 {
			return fault.Operatorf(fault.ReasonGitRejected, "422 Validation Failed")
		}
		return w.Redeliver(context.Background(), id)
	})
	w.heard()
	w.run(time.Minute)
	w.wantRecorded("good-0", "good-1", "good-2", "good-3", "good-4")
}

// However github-url spells the host, its Repositories are served.
func TestTheDefaultPort(t *testing.T) {
	for _, base := range []string{"https://GitHub.com", "https://github.com:443"} {
		w := newWorld(t)
		w.process.baseURL = func() string { return base }
		w.receive = nobody
		w.deliver("missed", 1)
		w.receive = nil
		w.run(time.Minute)
		w.wantRecorded("missed")
	}
}

// setBack is a world whose service's clock was hours ahead and is set right; then a delivery is
// missed, and nobody is there.
func setBack(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.deliver("recorded", 1)
	w.log[0].At = w.clock.Now().Add(3 * time.Hour)
	w.run(10 * time.Minute)
	w.receive = nobody
	w.deliver("missed", 1)
	return w
}

// The clock of an Enterprise Server was hours ahead, and is set right.
func TestAClockThatIsSetBack(t *testing.T) {
	w := setBack(t)
	w.receive = nil
	w.run(6 * time.Minute)
	w.wantRecorded("missed")
	w.run(4 * time.Hour)
	if len(w.asked) != 1 || len(w.events.Events) != 0 {
		t.Errorf("asked for %q", w.asked)
	}
}

// What was taken while the clock was ahead was not taken after what fails now: an outage after that
// gives up nothing.
func TestAnOutageAfterAClockIsSetBack(t *testing.T) {
	w := newWorld(t)
	w.deliver("recorded", 1)
	w.log[0].At = w.clock.Now().Add(7 * time.Hour)
	w.run(10 * time.Minute)
	w.receive = nobody
	w.deliver("missed", 1)
	w.run(6 * time.Hour)
	w.receive = nil
	w.heard()
	w.run(time.Minute)
	w.wantRecorded("missed")
}

// While the ledger cannot be read no look succeeds. What was missed in that time is found
// afterwards, although the log still has an attempt of the time when the service's clock was ahead.
func TestLooksThatFailAfterAClockIsSetBack(t *testing.T) {
	w := setBack(t)
	unavailable := true
	w.kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return unavailable, nil, apierrors.NewServiceUnavailable("the API server is away")
	})
	w.run(30 * time.Minute)
	unavailable = false
	w.receive = nil
	w.heard()
	w.run(10 * time.Minute)
	w.wantRecorded("missed")
}

// Receivers do not notice that nobody reaches them, as when a certificate has ended, and so do not
// say that it is over. A delivery that succeeds says it: what was missed is then asked for without
// waiting, by a new process as well.
func TestAnOutageThatNoReceiverNoticed(t *testing.T) {
	for name, restart := range map[string]func(w *world){"the same process": func(*world) {}, "a new process": (*world).start} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run(time.Minute)
			w.receive = nobody
			w.deliver("missed", 1)
			w.run(85 * time.Minute)
			restart(w)
			w.receive = nil
			w.deliver("fresh", 1)
			w.run(15 * time.Minute)
			w.wantRecorded("missed")
		})
	}
}

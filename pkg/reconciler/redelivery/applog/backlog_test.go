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
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// timed is a service that takes its time for a page, and a receiver that signals all the time, as a
// namespace above its budget makes it.
type timed struct {
	*env
	page      time.Duration
	signalled time.Time
}

func (s *timed) Page(ctx context.Context, cursor string) ([]provider.Attempt, string, error) {
	s.clock.Step(s.page)
	if now := s.clock.Now(); now.Sub(s.signalled) > 3*time.Second {
		s.process.Signal()
		s.signalled = now
	}
	return s.env.Page(ctx, cursor)
}

// When the ledger is full, each read reads the whole log again. Frequent signals leave time for
// requests between the reads.
func TestBacklogIsRequestedBetweenReads(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	e.receive = unreachable
	for n := range maxMissed + 1000 {
		e.deliver(fmt.Sprint("missed-", n), 1)
		e.clock.Step(100 * time.Millisecond)
	}
	e.receive = nil
	service := &timed{env: e, page: 300 * time.Millisecond}
	e.source.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return service, nil }
	e.run(20 * time.Minute)
	if len(e.requests) < 600 || e.pages > 20*60 {
		t.Errorf("requested %d in twenty minutes, with %d pages", len(e.requests), e.pages)
	}
}

// github is GitHub with its published limit of 900 points a minute, of which pkg/provider lets a
// third be spent at once. A page takes one point and half a second; here it takes a fifth of that,
// because it is shorter. A redelivery takes five points and a quarter of a second.
type github struct {
	*env
	points *rate.Limiter
	posts  []time.Time
}

func (g *github) spend(points int, takes time.Duration) {
	g.clock.Step(g.points.ReserveN(g.clock.Now(), points).DelayFrom(g.clock.Now()) + takes)
}

func (g *github) Page(ctx context.Context, cursor string) ([]provider.Attempt, string, error) {
	g.spend(1, 100*time.Millisecond)
	return g.env.Page(ctx, cursor)
}

func (g *github) Redeliver(ctx context.Context, id int64) error {
	g.spend(5, 250*time.Millisecond)
	g.posts = append(g.posts, g.clock.Now())
	return g.env.Redeliver(ctx, id)
}

// 900 deliveries are requested within ten minutes, which GitHub's limits allow. The tenants take
// turns.
func TestRedeliveriesUseTheRateLimitFully(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	for id := range int64(3) { // each repository is another tenant's
		claim := e.claim(id + 1).DeepCopy()
		claim.Spec.Repository.Namespace = fmt.Sprint("team-", id+1)
		if err := e.claims.Update(claim); err != nil {
			t.Fatal(err)
		}
	}
	e.receive = unreachable
	const many = 900
	for n := range many {
		e.deliver(fmt.Sprint("missed-", n), int64(1+min(2, n/400))) // 400, 400 and 100, the last tenant's last
		e.clock.Step(200 * time.Millisecond)
	}
	e.receive = nil
	service := &github{env: e, points: rate.NewLimiter(10, 300)}
	e.source.open = func(string, provider.Credentials) (provider.DeliveryLog, error) { return service, nil }
	e.signal()
	began := e.clock.Now()
	e.run(10 * time.Minute)
	if len(e.requests) != many || len(e.recorded) != many {
		t.Errorf("%d of %d were requested in ten minutes, %d are recorded", len(e.requests), many, len(e.recorded))
	}
	third := 0
	for _, guid := range e.requests[:min(len(e.requests), 330)] {
		if n, _ := strconv.Atoi(strings.TrimPrefix(guid, "missed-")); n >= 800 {
			third++
		}
	}
	if third < 100 {
		t.Errorf("of the first 330 only %d are of the tenant with the fewest", third)
	}
	t.Logf("the last one after %v", service.posts[len(service.posts)-1].Sub(began))
}

// The many repositories of one tenant neither delay another tenant nor take its space. The same
// holds for unknown repositories, which count while the number of some Repository is not known.
func TestLargeTenantDelaysNoOtherTenant(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for _, crowd := range []string{"crowd", ""} {
		l := ledger{Through: now.Add(time.Hour)}
		for n := range 2 * maxMissed {
			l.Missed = append(l.Missed, redelivery.Delivery{
				GUID: fmt.Sprint(n), Repository: int64(n + 1), Tenant: crowd, First: now,
			})
		}
		for n := range 10 {
			l.Missed = append(l.Missed, redelivery.Delivery{
				GUID: fmt.Sprint("other-", n), Repository: -1, Tenant: "other", First: now.Add(time.Minute),
			})
		}
		l.forget()
		others, queue := 0, redelivery.NewQueue()
		for at := now; at.Before(now.Add(20 * time.Second)); at = at.Add(requestEvery) {
			d, due := queue.Next(l.Missed, at, func(*redelivery.Delivery) (time.Time, bool) { return now, true })
			if d == nil || due.After(at) {
				t.Fatalf("nothing is due: %v", due)
			}
			queue.Requested(d, at)
			if d.Tenant == "other" {
				others++
			}
		}
		if others != 10 || len(l.Missed) != maxMissed {
			t.Errorf("with the crowd %q %d of 20 are the other's, %d are kept", crowd, others, len(l.Missed))
		}
	}
}

// GitHub may make an attempt late, and list it where it was due.
func TestLateAttemptIsFound(t *testing.T) {
	e := newEnv(t)
	e.deliver("first", 1)
	e.run(10 * time.Minute)
	e.deliver("second", 1)
	e.run(10 * time.Minute)
	e.miss("late", 2)
	e.log[0], e.log[1], e.log[2] = e.log[2], e.log[0], e.log[1]
	e.run(6 * time.Minute)
	e.wantRecorded("late")
}

func TestRefusedRequestDelaysNoOtherDelivery(t *testing.T) {
	e := newEnv(t)
	e.run(time.Minute)
	e.receive = unreachable
	for n := range 20 {
		e.deliver(fmt.Sprint("odd-", n), 1)
	}
	for n := range 5 {
		e.deliver(fmt.Sprint("good-", n), 1)
	}
	e.receive = nil
	e.redeliverBy(func(id int64) error {
		if id <= 20 {
			return fault.Operatorf(fault.ReasonGitRejected, "422 Validation Failed")
		}
		return e.Redeliver(context.Background(), id)
	})
	e.signal()
	e.run(time.Minute)
	e.wantRecorded("good-0", "good-1", "good-2", "good-3", "good-4")
}

func TestSpellingOfGitHubURLDoesNotMatter(t *testing.T) {
	for _, base := range []string{"https://GitHub.com", "https://github.com:443"} {
		e := newEnv(t)
		e.source.baseURL = func() string { return base }
		e.miss("missed", 1)
		e.run(time.Minute)
		e.wantRecorded("missed")
	}
}

// setBack returns an env whose GitHub clock was hours ahead and is set right. Then a delivery
// fails, because no receiver is reachable.
func setBack(t *testing.T) *env {
	t.Helper()
	e := newEnv(t)
	e.deliver("recorded", 1)
	e.log[0].At = e.clock.Now().Add(3 * time.Hour)
	e.run(10 * time.Minute)
	e.receive = unreachable
	e.deliver("missed", 1)
	return e
}

// The clock of an Enterprise Server was hours ahead, and is set right.
func TestClockSetBackLosesNothing(t *testing.T) {
	e := setBack(t)
	e.receive = nil
	e.run(6 * time.Minute)
	e.wantRecorded("missed")
	e.run(4 * time.Hour)
	if len(e.requests) != 1 || len(e.events.Events) != 0 {
		t.Errorf("requested %q", e.requests)
	}
}

// A success from the time when the clock was ahead does not count as one after later failures.
func TestClockSetBackRefusesNothing(t *testing.T) {
	e := newEnv(t)
	e.deliver("recorded", 1)
	e.log[0].At = e.clock.Now().Add(7 * time.Hour)
	e.run(10 * time.Minute)
	e.receive = unreachable
	e.deliver("missed", 1)
	e.run(6 * time.Hour)
	e.receive = nil
	e.signal()
	e.run(time.Minute)
	e.wantRecorded("missed")
}

// While the ledger cannot be read every read fails. Afterwards the deliveries of that time are
// found, although the log has an attempt from when the clock was ahead.
func TestFailedReadsAfterClockSetBackLoseNothing(t *testing.T) {
	e := setBack(t)
	unavailable := true
	e.kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return unavailable, nil, apierrors.NewServiceUnavailable("the API server is away")
	})
	e.run(30 * time.Minute)
	unavailable = false
	e.receive = nil
	e.signal()
	e.run(10 * time.Minute)
	e.wantRecorded("missed")
}

// Receivers do not notice that no delivery reaches them, for example because a certificate has
// expired, so none signals. A delivery that succeeds ends the waits, also for a new process.
func TestSuccessEndsAnOutageThatNoReceiverNoticed(t *testing.T) {
	for name, restart := range map[string]func(e *env){"the same process": func(*env) {}, "a new process": (*env).start} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.run(time.Minute)
			e.receive = unreachable
			e.deliver("missed", 1)
			e.run(85 * time.Minute)
			restart(e)
			e.receive = nil
			e.deliver("fresh", 1)
			e.run(15 * time.Minute)
			e.wantRecorded("missed")
		})
	}
}

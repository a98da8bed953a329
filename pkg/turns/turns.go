// SPDX-License-Identifier: Apache-2.0

// Package turns shares the workers among Git services and namespaces: neither a service that hangs nor a tenant whose
// services hang can hold them all (B15, S6).
package turns

import (
	"fmt"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// Retry is how soon whoever found no turn tries again.
	Retry = time.Second
	// apart is the time between two of a namespace that try again because of the same share. Each of them reads its event first,
	// and so that costs 20 calls a second of the 100 that the controller has (-kube-api-qps), however many events wait.
	apart = 50 * time.Millisecond
	// maxLines bounds for how many it is remembered when the next event tries again.
	maxLines = 10_000
)

// The shares of the workers, as the metric names them. Each is at least one worker.
const (
	// Work is what a namespace has for whatever is done for its events: a half. An admission webhook of a team may hang, too.
	Work = "work"
	// Namespace is what a namespace has at all Git services together: a quarter, whatever its own servers do.
	Namespace = "namespace"
	// NamespaceHost is what a namespace has at one Git host: one less than a quarter. If that host hangs, one is left for its
	// repositories elsewhere.
	NamespaceHost = "namespace_host"
	// Installation is what an installation of the App has, or all tenants of a host without one: a half, so that two
	// namespaces have their whole quarter there.
	Installation = "installation"
	// Host is what a Git host has: three quarters. If one hangs that many tenants use, one namespace elsewhere has its whole
	// quarter.
	Host = "host"
)

// Visit is an event's at a Git service.
type Visit struct {
	// Namespace is that of the event's Repository.
	Namespace string
	// Host is the Git service's, e.g. "github.com".
	Host string
	// Installation is that of the GitHub App, 0 if there is none.
	Installation int64
}

// Turns counts who is where. It is advice: losing it costs time, never truth. Safe for concurrent use.
type Turns struct {
	workers int
	now     func() time.Time
	refused func(share string)

	mu    sync.Mutex
	taken map[place]int
	next  map[line]time.Time // when the next event tries again
}

// line is the events of a namespace that wait for a turn of the same share.
type line struct {
	namespace string
	place     place
}

// place is what has a share, e.g. the share "host" of "github.com".
type place struct{ share, of string }

// New shares so many workers. Refused is told of each share that was all taken when somebody asked.
func New(workers int, now func() time.Time, refused func(share string)) *Turns {
	return &Turns{workers: workers, now: now, refused: refused, taken: map[place]int{}, next: map[line]time.Time{}}
}

// Begin takes a turn for whatever is done for an event of a namespace. It never waits: when there is none it returns a
// Throttled fault with fault.ReasonBusy. Otherwise release gives the turn back and must be called once.
func (t *Turns) Begin(namespace string) (release func(), err error) {
	return t.take(namespace, place{Work, namespace})
}

// Visit takes a turn at a Git service, beside the one of Begin and like it.
func (t *Turns) Visit(v Visit) (release func(), err error) {
	return t.take(v.Namespace, place{NamespaceHost, v.Namespace + " at " + v.Host}, place{Namespace, v.Namespace},
		place{Installation, fmt.Sprintf("%s/%d", v.Host, v.Installation)}, place{Host, v.Host})
}

// take takes a turn at all places, or at none. The narrowest comes first: events of a host that hangs wait for that host, and
// not in the line of those that wait for another one.
func (t *Turns) take(namespace string, places ...place) (release func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range places {
		if t.taken[p] >= t.limit(p.share) {
			t.refused(p.share)
			return nil, fault.Throttledf(fault.ReasonBusy, t.retry(line{namespace, p}), "waiting for other events: the share of the workers is taken that the %s %s has", p.share, p.of)
		}
	}
	for _, p := range places {
		t.taken[p]++
	}
	return func() { t.release(places) }, nil
}

func (t *Turns) release(places []place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range places {
		if t.taken[p]--; t.taken[p] <= 0 {
			delete(t.taken, p)
		}
	}
}

func (t *Turns) limit(share string) int {
	quarter := t.workers / 4
	return max(1, map[string]int{Work: 2 * quarter, Namespace: quarter, NamespaceHost: quarter - 1, Installation: 2 * quarter, Host: 3 * quarter}[share])
}

// retry is called with the lock held. Whoever could not even begin has read nothing, and need not stand in line.
func (t *Turns) retry(in line) time.Duration {
	if in.place.share == Work {
		return Retry
	}
	now := t.now()
	at := now.Add(Retry)
	if next := t.next[in]; next.After(at) {
		at = next
	}
	if len(t.next) >= maxLines {
		clear(t.next)
	}
	t.next[in] = at.Add(apart)
	return at.Sub(now)
}

// Taken returns how many turns are taken of each share, e.g. "host github.com". One that nobody has a turn of is not in it.
func (t *Turns) Taken() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := map[string]int{}
	for p, n := range t.taken {
		taken[p.share+" "+p.of] = n
	}
	return taken
}

// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// The names of the limits, as the metrics have them. Each limit is at least one slot.
const (
	// Work limits what is done for one namespace's events to half of the workers. An admission
	// webhook of a team may hang, too.
	Work = "work"
	// Namespace limits one namespace at all Git services together to a quarter of the workers,
	// whatever its own servers do.
	Namespace = "namespace"
	// NamespaceHost limits one namespace at one Git host to one less than a quarter. If that host
	// hangs, one slot is left for its repositories elsewhere.
	NamespaceHost = "namespace_host"
	// Installation limits an installation of the App, or all tenants of a host without one, to half
	// of the workers, so that two namespaces can use their whole quarter there.
	Installation = "installation"
	// PullRequests limits those of one Repository for which nothing is done yet to one of 64
	// workers, and those that have begun to one more. An untrusted user may push to 80 of them at
	// once, which would leave no processor for pushes.
	PullRequests = "pull_requests"
	// Host limits a Git host to three quarters of the workers. If a host hangs that many tenants
	// use, one namespace elsewhere has its whole quarter.
	Host = "host"
)

// maxPause is the longest pause between two pull requests of a Repository. The pause is for the API
// server's processors and ours, whose work takes less; an event that waits for a Git service leaves
// them to others anyway.
const maxPause = 100 * time.Millisecond

// LimitNames returns the names of the limits.
func LimitNames() []string {
	return []string{Work, Namespace, NamespaceHost, Installation, PullRequests, Host}
}

// key is what a limit is of, e.g. "host" of "github.com".
type key struct{ name, of string }

// limit counts the slots in use for one key. It is deleted when no slot is in use and no event
// waits for one.
type limit struct {
	key
	used, max   int
	fifos       int       // queues of events that need it
	lastUsed    uint64    // when a slot was last taken, in uses of the limiter; of a new one, when it was created
	window      *window   // how many slots the Git service can take; nil where that is not measured
	pulls       bool      // of Work: whether the last event that was woken is of a pull request
	since       time.Time // when a slot was last taken
	pausedUntil time.Time // of PullRequests: no slot is free until then
}

// limiter limits what is in flight for each key. The Queue's lock guards it.
type limiter struct {
	now     func() time.Time
	workers int
	limits  map[key]*limit
	windows recent.Map[key, *window]
	uses    uint64 // counts the slots that were taken, and the new queues
}

// The indexes of two limits in what limiter.of returns for a service.
const (
	namespaceHostOf = 1
	installationOf  = 3
)

// of returns the limits of which the events of a queue need one slot each. Work comes first. For a
// Git service, the others follow from the narrowest to the widest, so that events of a host that
// hangs count as waiting for that host.
func (l *limiter) of(k fifoKey) []*limit {
	limits := []*limit{l.limit(key{Work, k.namespace})}
	if !k.service {
		if k.pullsOf != "" {
			begun := l.limit(key{PullRequests, k.namespace + "/" + k.pullsOf + " begun"})
			begun.max = l.max(PullRequests) + 1 // one may hang at the Git service, where it is soon the only one
			limits = append(limits, begun)
		}
		return limits
	}
	narrow := l.limit(namespaceHost(k.namespace, k.host))
	installation := l.limit(installationAt(k.host, k.installation))
	if measured := measured(k.namespace, k.host, k.installation); measured == installation.key {
		installation.window = l.window(measured)
	} else {
		narrow.window = l.window(measured)
	}
	limits = append(limits, narrow, l.limit(key{Namespace, k.namespace}), installation)
	if k.pullsOf != "" && k.fresh {
		limits = append(limits, l.limit(key{PullRequests, k.namespace + "/" + k.pullsOf}))
	}
	return append(limits, l.limit(key{Host, k.host}))
}

func namespaceHost(namespace, host string) key { return key{NamespaceHost, namespace + " at " + host} }

func installationAt(host string, installation int64) key {
	return key{Installation, fmt.Sprintf("%s/%d", host, installation)}
}

func (l *limiter) limit(k key) *limit {
	known, found := l.limits[k]
	if !found {
		// A key that had no event a moment ago is not the one that has waited the longest.
		known = &limit{key: k, max: l.max(k.name), lastUsed: l.uses}
		l.limits[k] = known
	}
	return known
}

// max is how many slots a limit has.
func (l *limiter) max(name string) int {
	quarter := l.workers / 4
	return max(1, map[string]int{
		Work: 2 * quarter, Namespace: quarter, NamespaceHost: quarter - 1,
		Installation: 2 * quarter, PullRequests: quarter / 16, Host: 3 * quarter,
	}[name])
}

// firstFull returns the first limit that has no free slot, nil if all have one.
func (l *limiter) firstFull(limits []*limit) *limit {
	now := l.now()
	for _, limit := range limits {
		if limit.full(now) {
			return limit
		}
	}
	return nil
}

// full reports whether the limit has no free slot now.
func (l *limit) full(now time.Time) bool {
	return l.used >= l.max || now.Before(l.pausedUntil) || l.window != nil && l.used >= l.window.slots(now)
}

// before reports whether the limit has fewer slots in use than another one, or as many and none was
// taken for longer. It is not decided for a limit and itself.
func (l *limit) before(other *limit) (first, decided bool) {
	switch {
	case l == other:
		return false, false
	case l.used != other.used:
		return l.used < other.used, true
	default:
		return l.lastUsed < other.lastUsed, l.lastUsed != other.lastUsed
	}
}

// acquire takes a slot of each limit.
func (l *limiter) acquire(limits []*limit) {
	l.uses++
	for _, limit := range limits {
		limit.used++
		limit.lastUsed, limit.since = l.uses, l.now()
	}
}

// release releases a slot of each limit. It returns when a limit that it has paused has free slots
// again, the zero time if it has paused none. Waiting pull requests of a Repository are paused for
// as long as the one before them took, so that they leave half of the time to others.
func (l *limiter) release(limits []*limit) (paused time.Time) {
	now := l.now()
	for _, limit := range limits {
		limit.used--
		if limit.name == PullRequests && limit.fifos > 0 {
			limit.pausedUntil = now.Add(min(now.Sub(limit.since), maxPause))
			paused = limit.pausedUntil
		}
	}
	l.tidy(limits)
	return paused
}

// tidy deletes unused limits: hosts and namespaces come and go as long as the process lives.
func (l *limiter) tidy(limits []*limit) {
	for _, limit := range limits {
		if limit.used == 0 && limit.fifos == 0 {
			delete(l.limits, limit.key)
		}
	}
}

// inUse is Queue.InUse.
func (l *limiter) inUse() map[string]int {
	used := map[string]int{}
	for k, limit := range l.limits {
		if limit.used > 0 {
			used[k.name+" "+k.of] = limit.used
		}
	}
	return used
}

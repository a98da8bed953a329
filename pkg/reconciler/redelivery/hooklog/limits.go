// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// limit is a limit that some steps share.
type limit struct {
	name string
	// every is the time between two steps, 0 for none.
	every time.Duration
	// atOnce is how many steps may run at the same time, 0 for any number.
	atOnce int
}

const (
	// busyWait is how long a step waits that found as many running as may.
	busyWait = time.Second
	// maxLimits is the number of limits from which on those that delay no step are dropped.
	maxLimits = 1000
)

// limits delays steps. A step passes its limits one after the other: while it waits for the first,
// it uses nothing of the second. Safe for concurrent use.
type limits struct {
	mu           sync.Mutex
	free         map[string]time.Time   // when the next step may pass, by limit
	running      map[string]int         // by limit
	reservations map[string]reservation // of the steps that wait, by key
}

// reservation is when a step may pass a limit, having passed those before it.
type reservation struct {
	limit int
	at    time.Time
}

func newLimits() *limits {
	return &limits{free: map[string]time.Time{}, running: map[string]int{}, reservations: map[string]reservation{}}
}

// enter returns how long the step of a key has to wait. If that is 0 the step runs, until it calls
// leave.
func (l *limits) enter(key string, all []limit, now time.Time) (wait time.Duration, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, waits := l.reservations[key]
	if !waits {
		r = reservation{at: l.reserve(all[0], now)}
	}
	for !r.at.After(now) && r.limit < len(all)-1 {
		r.limit++
		r.at = l.reserve(all[r.limit], now)
	}
	l.reservations[key] = r
	if r.at.After(now) {
		return r.at.Sub(now), nil
	}
	for _, one := range all {
		if one.atOnce > 0 && l.running[one.name] >= one.atOnce {
			return busyWait, nil // and keeps its reservation
		}
	}
	delete(l.reservations, key)
	for _, one := range all {
		l.running[one.name]++
	}
	return 0, func() { l.leave(all) }
}

// reserve returns when the next step may pass a limit, and delays those after it.
func (l *limits) reserve(one limit, now time.Time) time.Time {
	if one.every == 0 {
		return now
	}
	at := redelivery.Latest(now, l.free[one.name])
	if len(l.free) > maxLimits {
		for name, free := range l.free {
			if !free.After(now) {
				delete(l.free, name)
			}
		}
	}
	l.free[one.name] = at.Add(one.every)
	return at
}

func (l *limits) leave(all []limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range all {
		if l.running[one.name]--; l.running[one.name] <= 0 {
			delete(l.running, one.name)
		}
	}
}

// forget releases the reservation of a key.
func (l *limits) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reservations, key)
}

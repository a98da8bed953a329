// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"sync"
	"time"
)

// lane is what steps take their turns in.
type lane struct {
	name string
	// every is the time between two turns, 0 for none.
	every time.Duration
	// atOnce is how many may be in it at the same time, 0 for any number.
	atOnce int
}

const (
	// busyWait is when one comes back that found a lane full.
	busyWait = time.Second
	// lanesKept is from when on lanes that nobody waits in are dropped.
	lanesKept = 1000
)

// pace says whose turn it is. Whoever has to wait has a place in one lane after the other: others
// that come later wait longer, and who waits for long in one lane takes nothing of the next. Safe
// for concurrent use.
type pace struct {
	mu     sync.Mutex
	free   map[string]time.Time // when the next turn in a lane is
	inside map[string]int       // how many are in a lane
	places map[string]place     // of those that wait, by key
}

// place is a turn in a lane, when those before it are passed.
type place struct {
	lane int
	at   time.Time
}

func newPace() *pace {
	return &pace{free: map[string]time.Time{}, inside: map[string]int{}, places: map[string]place{}}
}

// enter returns how long the key has to wait. If it has not to, it is in all lanes until it calls
// leave.
func (p *pace) enter(key string, lanes []lane, now time.Time) (left time.Duration, leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, waits := p.places[key]
	if !waits {
		at = place{at: p.turn(lanes[0], now)}
	}
	for !at.at.After(now) && at.lane < len(lanes)-1 {
		at.lane++
		at.at = p.turn(lanes[at.lane], now)
	}
	p.places[key] = at
	if at.at.After(now) {
		return at.at.Sub(now), nil
	}
	for _, l := range lanes {
		if l.atOnce > 0 && p.inside[l.name] >= l.atOnce {
			return busyWait, nil // and keeps its place
		}
	}
	delete(p.places, key)
	for _, l := range lanes {
		p.inside[l.name]++
	}
	return 0, func() { p.leave(lanes) }
}

// turn takes the next turn in a lane.
func (p *pace) turn(l lane, now time.Time) time.Time {
	if l.every == 0 {
		return now
	}
	at := now
	if free := p.free[l.name]; free.After(at) {
		at = free
	}
	if len(p.free) > lanesKept {
		for name, free := range p.free {
			if !free.After(now) {
				delete(p.free, name)
			}
		}
	}
	p.free[l.name] = at.Add(l.every)
	return at
}

func (p *pace) leave(lanes []lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range lanes {
		if p.inside[l.name]--; p.inside[l.name] <= 0 {
			delete(p.inside, l.name)
		}
	}
}

// forget gives a place back that nobody comes for.
func (p *pace) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.places, key)
}

// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// unseenFor is how long an event that this process has created counts although no watch has
	// shown it. An API server ends each watch within ten minutes, and the list that follows is
	// complete.
	unseenFor = 10 * time.Minute
	// orphanedFor is how long a payload without an event counts: the sweep, which runs every ten
	// minutes, deletes it when it is an hour old.
	orphanedFor = 75 * time.Minute
)

// Ledger adds up what unsettled events use: those that a watch has shown, and those that this
// process has just written. With the cache of a metadata informer, it takes 1.5 KB for each of
// them.
//
// Each process that admits deliveries has a Ledger, which counts events of other processes when its
// watch shows them. Together, the processes exceed a limit by what is in flight. If a watch shows
// nothing new, its process admits at most one whole limit.
type Ledger struct {
	limits func() Limits
	clock  clock.PassiveClock
	// crossed is called, without the lock, when the budget of a scope is exhausted or free again.
	crossed func(Scope)

	mu      sync.Mutex
	entries map[string]entry // by the event's name
	used    map[Scope]Limits
	plans   map[Scope]int64 // bytes of plans, which used has as well
	full    map[Scope]bool
}

// entry is what one event uses.
type entry struct {
	repository types.NamespacedName
	subject    string
	use        Limits
	plan       int64
	// until is when it no longer counts, unless a watch shows the event before. It is zero after a
	// watch has.
	until time.Time
}

// New returns an empty ledger; crossed may be nil.
func New(limits func() Limits, clock clock.PassiveClock, crossed func(Scope)) *Ledger {
	if crossed == nil {
		crossed = func(Scope) {}
	}
	return &Ledger{
		limits:  limits,
		clock:   clock,
		crossed: crossed,
		entries: map[string]entry{},
		used:    map[Scope]Limits{},
		plans:   map[Scope]int64{},
		full:    map[Scope]bool{},
	}
}

// Admit counts an event that is about to be created. If a budget of its pull request or Repository
// is exhausted, it counts nothing and returns false with the budget's scope. The last event that is
// admitted may exceed the budget, so that any delivery is admitted to an unused one. An event
// counts once, however often it is admitted. The Use of an event without a pull request has no
// subject.
func (l *Ledger) Admit(event string, use Use) (Scope, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, tried := l.entries[event]
	if tried && before.until.IsZero() {
		return Scope{}, true // it is there, and creating it will say so
	}
	l.remove(event)
	admitted := entryOf(use)
	admitted.until = l.clock.Now().Add(unseenFor)
	s, over := l.over(admitted)
	if over {
		l.expire()
		s, over = l.over(admitted)
	}
	if !over {
		l.put(event, admitted)
		return Scope{}, true
	}
	if tried {
		l.put(event, before)
	}
	return s, false
}

// Release stops counting an admitted event of which nothing was written.
func (l *Ledger) Release(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.entries[event].until.IsZero() {
		l.remove(event)
	}
}

// Orphaned is called after so many bytes of an admitted event's payload were written, but not the
// event, as far as is known.
func (l *Ledger) Orphaned(event string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[event]
	if e.until.IsZero() {
		return
	}
	l.remove(event)
	if bytes > 0 {
		l.put(event, entry{repository: e.repository, use: Limits{Bytes: bytes}, until: l.clock.Now().Add(orphanedFor)})
	}
}

// Seen counts an unsettled event that a watch shows.
func (l *Ledger) Seen(event string, use Use) {
	l.mu.Lock()
	now := entryOf(use)
	if l.entries[event] == now {
		l.mu.Unlock()
		return
	}
	l.remove(event)
	l.put(event, now)
	l.judged(use.Repository)
}

func entryOf(use Use) entry {
	return entry{repository: use.Repository, subject: use.Subject, use: Limits{1, use.Bytes}, plan: use.Plan}
}

// Plan counts what an event uses with its plan. If other events have exhausted a budget of bytes,
// it changes nothing and returns false with the budget's scope.
//
// It admits an event anyway if no other event of the scope has a plan. Otherwise all events might
// wait for each other, e.g. after a limit was lowered. So the last event may exceed a budget, and a
// plan that is larger than a budget is admitted when it is the only one.
func (l *Ledger) Plan(event string, use Use) (Scope, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.entries[event]
	if !known {
		return Scope{}, true // it has ended, and recording the plan will say so
	}
	l.remove(event)
	total := l.limits()
	for _, s := range scopes(use.Repository) {
		if l.used[s].Bytes >= total.In(s).Bytes && l.plans[s] > 0 {
			l.put(event, before)
			return s, false
		}
	}
	l.put(event, entryOf(use))
	return Scope{}, true
}

// Unplanned undoes Plan, because the plan could not be stored.
func (l *Ledger) Unplanned(event string, use Use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.entries[event]; there {
		l.remove(event)
		l.put(event, entryOf(use))
	}
}

// Gone stops counting an event that is settled or deleted.
func (l *Ledger) Gone(event string) {
	l.mu.Lock()
	repository := l.entries[event].repository
	l.remove(event)
	l.judged(repository)
}

// Full returns the narrowest scope of a Repository whose budget is exhausted. A budget stays
// exhausted until a quarter of it is free, so that the result does not change with every event.
// Raised limits count at once.
func (l *Ledger) Full(repository types.NamespacedName) (Scope, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judge(repository)
	for _, s := range scopes(repository) {
		if l.full[s] {
			return s, true
		}
	}
	return Scope{}, false
}

// Limits returns the limits of a scope.
func (l *Ledger) Limits(s Scope) Limits { return l.limits().In(s) }

// judged calls judge after a change, unlocks, and calls crossed.
func (l *Ledger) judged(repository types.NamespacedName) {
	crossed := l.judge(repository)
	l.mu.Unlock()
	for _, s := range crossed {
		l.crossed(s)
	}
}

// judge determines which budgets of a Repository are exhausted, and returns those that have
// changed.
func (l *Ledger) judge(repository types.NamespacedName) (crossed []Scope) {
	for _, s := range scopes(repository) {
		used, limit := l.used[s], l.limits().In(s)
		reached := used.Events >= limit.Events || used.Bytes >= limit.Bytes
		relieved := used.Events <= limit.Events*3/4 && used.Bytes <= limit.Bytes*3/4
		switch {
		case reached && !l.full[s]:
			l.full[s] = true
			crossed = append(crossed, s)
		case relieved && l.full[s]:
			delete(l.full, s)
			crossed = append(crossed, s)
		}
	}
	return crossed
}

// over returns the narrowest scope of the entry whose budget is reached.
func (l *Ledger) over(e entry) (Scope, bool) {
	total := l.limits()
	for _, s := range e.scopes() {
		if used, limit := l.used[s], total.In(s); used.Events >= limit.Events || used.Bytes >= limit.Bytes {
			return s, true
		}
	}
	return Scope{}, false
}

// expire stops counting events that no watch has shown in time.
func (l *Ledger) expire() {
	now := l.clock.Now()
	for event, e := range l.entries {
		if !e.until.IsZero() && !e.until.After(now) {
			l.remove(event)
		}
	}
}

func (l *Ledger) put(event string, e entry) {
	l.entries[event] = e
	l.add(e, 1)
}

func (l *Ledger) remove(event string) {
	if e, ok := l.entries[event]; ok {
		delete(l.entries, event)
		l.add(e, -1)
	}
}

func (l *Ledger) add(e entry, sign int) {
	for _, s := range e.scopes() {
		used := l.used[s]
		used.Events += sign * e.use.Events
		used.Bytes += int64(sign) * e.use.Bytes
		if used == (Limits{}) {
			delete(l.used, s) // Repositories come and go
			continue
		}
		l.used[s] = used
	}
	if e.plan == 0 {
		return
	}
	for _, s := range scopes(e.repository) {
		if l.plans[s] += int64(sign) * e.plan; l.plans[s] == 0 {
			delete(l.plans, s)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// unseen is how long an event that this process has created counts although no watch has shown
	// it: an API server ends each watch within ten minutes, and the list that follows shows what
	// there is.
	unseenFor = 10 * time.Minute
	// orphaned is how long a payload without an event counts: the sweep, which comes every ten
	// minutes, deletes it when it is an hour old.
	orphanedFor = 75 * time.Minute
)

// Ledger adds up what open events use: what a watch shows, and what this process has just written
// and the watch has not shown yet. Make it with New. With the cache of a metadata informer it takes
// 1.5 KB for each open event.
//
// Several processes that admit deliveries each have one, and see what the others create when their
// watch shows it. Together they exceed a limit by what is in flight; if their watches stand still,
// each of them admits one limit at most.
type Ledger struct {
	limits func() Limits
	clock  clock.PassiveClock
	// crossed is called, without the lock, when the budget of a scope is used up or is free again.
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
	// until is when it counts no more, unless a watch shows the event before; zero when a watch
	// has.
	until time.Time
}

// New returns a ledger of nothing; crossed may be nil.
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

// Admit counts an event that is about to be created, unless a budget of its pull request or
// Repository is used up: then it returns whose, and counts nothing. The Use of an event that is of
// no pull request has no subject. A budget is used up when it is reached, so that the last one
// admitted may exceed it: any delivery is admitted to a budget of which nothing is used. Another
// attempt at the same event counts once.
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

// Dropped takes back what was admitted: nothing of it was written.
func (l *Ledger) Release(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.entries[event].until.IsZero() {
		l.remove(event)
	}
}

// Orphaned tells that so many bytes of the payload of what was admitted were written, and the
// event, as far as is known, was not.
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

// Seen counts an open event that a watch shows.
func (l *Ledger) Seen(event string, use Use) {
	repository := use.Repository
	l.mu.Lock()
	now := entryOf(use)
	if l.entries[event] == now {
		l.mu.Unlock()
		return
	}
	l.remove(event)
	l.put(event, now)
	l.judged(repository)
}

func entryOf(use Use) entry {
	return entry{repository: use.Repository, subject: use.Subject, use: Limits{1, use.Bytes}, plan: use.Plan}
}

// Plan counts what an event that a watch has shown uses from now on, with its plan, unless a budget
// of bytes is used up without it: then it returns whose, and changes nothing. But while no other
// event of that scope has a plan, this one is let in: somebody must go on, or all would wait for
// each other, e.g. after a limit was lowered. So the last one may exceed a budget, and one whose
// plan alone is larger than it is let in when it is alone.
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

// Unplanned takes back what Plan has counted: it could not be recorded.
func (l *Ledger) Unplanned(event string, use Use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.entries[event]; there {
		l.remove(event)
		l.put(event, entryOf(use))
	}
}

// Gone takes back an event that is settled or deleted.
func (l *Ledger) Gone(event string) {
	l.mu.Lock()
	repository := l.entries[event].repository
	l.remove(event)
	l.judged(repository)
}

// Full returns the narrowest scope of a Repository whose budget is used up: it was reached, and
// more than three quarters of it are used since, so that the answer does not change with every
// event. The limits are those of now: whoever raises them need not wait for an event to end.
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

// Limits are those of a scope now.
func (l *Ledger) Limits(s Scope) Limits { return l.limits().In(s) }

// judged looks which budgets are used up after a change, unlocks and tells.
func (l *Ledger) judged(repository types.NamespacedName) {
	crossed := l.judge(repository)
	l.mu.Unlock()
	for _, s := range crossed {
		l.crossed(s)
	}
}

// judge looks which budgets of a Repository are used up, and returns those of which that has
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

// over returns the narrowest scope whose budget is reached.
func (l *Ledger) over(e entry) (Scope, bool) {
	total := l.limits()
	for _, s := range e.scopes() {
		if used, limit := l.used[s], total.In(s); used.Events >= limit.Events || used.Bytes >= limit.Bytes {
			return s, true
		}
	}
	return Scope{}, false
}

// expire takes back what no watch has shown in time.
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

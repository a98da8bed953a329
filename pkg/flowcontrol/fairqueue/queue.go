// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"slices"
	"time"
)

// lineKey is what the events of a line have in common. One that waits for work alone has a
// namespace only. What has begun and what is fresh take turns, so that the end of a run is not
// reported after all pushes that came before it.
type lineKey struct {
	namespace, host string
	installation    int64
	pullsOf         string // the Repository whose pull requests they are
	visits, fresh   bool
	renews          bool // they wait to renew a token
}

// line is the events that wait for the same turns, in the order in which they came.
type line struct {
	key    lineKey
	shares []*share
	events []*event
	served uint64 // when one of them was last called, or the first one came
}

// stands reports whether the event stands in the line already.
func (e *event) stands(key lineKey) bool {
	if key.visits {
		return e.atVisit != nil
	}
	return e.atWork != nil
}

// join puts an event at the end of a line; false if there is no room. Found is the share of which
// it found no turn.
func (t *Turns) join(e *event, key lineKey, shares []*share, found string) bool {
	if t.total >= maxWaiting && !t.makeRoom(key.namespace, shares) {
		return false
	}
	l, known := t.lines[key]
	if !known {
		t.served++ // of lines that nobody was called from, the first is the oldest
		l = &line{key: key, shares: shares, served: t.served}
		t.lines[key] = l
		for _, s := range shares {
			s.lines++
		}
	}
	l.events = append(l.events, e)
	if key.visits {
		e.atVisit, e.found[1] = l, found
	} else {
		e.atWork, e.found[0] = l, found
	}
	t.waiting[found]++
	t.places[key.namespace]++
	t.total++
	return true
}

// makeRoom takes a place from the namespace with the most for one that has at least two fewer;
// false if there is none. The last one of its longest line goes, of the renewals' only if there is
// no other, and comes back after the time Unlisted. The shares that the newcomer will need are not
// forgotten meanwhile.
func (t *Turns) makeRoom(namespace string, needed []*share) bool {
	most := ""
	for other, n := range t.places {
		if most == "" || n > t.places[most] {
			most = other
		}
	}
	if t.places[most] <= t.places[namespace]+1 {
		return false
	}
	longest := t.longest(most)
	e := longest.events[len(longest.events)-1]
	for _, s := range needed {
		s.lines++
	}
	t.leave(e, longest)
	for _, s := range needed {
		s.lines--
	}
	t.forget(e)
	t.called = append(t.called, call{e.name, Unlisted})
	return true
}

// longest is the longest line of a namespace, of the renewals' only if there is no other.
func (t *Turns) longest(namespace string) *line {
	var longest *line
	for _, l := range t.lines {
		switch {
		case l.key.namespace != namespace:
		case longest == nil,
			!l.key.renews && longest.key.renews,
			l.key.renews == longest.key.renews && len(l.events) > len(longest.events):
			longest = l
		}
	}
	return longest
}

// leave takes an event out of a line; nil is none.
func (t *Turns) leave(e *event, l *line) {
	if l == nil {
		return
	}
	if i := slices.Index(l.events, e); i >= 0 {
		l.events = slices.Delete(l.events, i, i+1)
	}
	found := e.found[0]
	if l.key.visits {
		e.atVisit, found = nil, e.found[1]
	} else {
		e.atWork = nil
	}
	t.total--
	if t.places[l.key.namespace]--; t.places[l.key.namespace] == 0 {
		delete(t.places, l.key.namespace)
	}
	if t.waiting[found]--; t.waiting[found] == 0 {
		delete(t.waiting, found)
	}
	if len(l.events) == 0 {
		delete(t.lines, l.key)
		for _, s := range l.shares {
			s.lines--
		}
		t.tidy(l.shares)
	}
}

// next calls whoever can have a turn now. What is called has its turn for the time Reserved.
func (t *Turns) next() {
	for {
		l, e := t.fairest()
		if l == nil {
			return
		}
		t.count(l.shares)
		l.served = t.served
		l.shares[0].pulls = l.key.pullsOf != ""
		e.until = t.options.Now().Add(Reserved)
		e.keep(l.shares, l.key.visits)
		t.leave(e, e.atWork) // whoever has a turn at a Git service works as well
		if l.key.visits {
			t.leave(e, l)
		}
		t.called = append(t.called, call{e.name, 0})
		t.alarm(e.until)
	}
}

// fairest is the line whose turn it is, and the first in it: nil if nobody can have one. It looks
// at all lines, which takes 50 µs for a thousand of them: there are as many as namespaces and
// Repositories that wait at the same time.
func (t *Turns) fairest() (*line, *event) {
	var first *line
	var called *event
	for _, l := range t.lines {
		if t.taken(l.shares[len(l.shares)-1]) || first != nil && !l.before(first) ||
			t.full(l.shares) != nil { // the widest first: it is taken for many lines
			continue
		}
		if i := slices.IndexFunc(l.events, (*event).idle); i >= 0 {
			first, called = l, l.events[i]
		}
	}
	return first, called
}

// keep keeps the turns of a line's shares for an event: those for its work, and those for a visit
// if it was one.
func (e *event) keep(shares []*share, visits bool) {
	e.work = shares
	if visits {
		e.work, e.visit = shares[:1:1], shares[1:]
	}
}

// idle reports whether an event may be called. One that is worked on keeps its place until that
// ends.
func (e *event) idle() bool { return !e.attended && e.work == nil }

// before reports whether a line is served before another one: that of the installation which has
// the fewest turns, then the one whose last turn is the longest ago; within an installation one of
// renewals, then that of the namespace which has the fewest turns there, then the longest ago;
// within a namespace pull requests and others in turn, however many Repositories have pull
// requests.
func (l *line) before(other *line) bool {
	if l.key.visits && other.key.visits {
		if first, decided := l.shares[installationOf].before(other.shares[installationOf]); decided {
			return first
		}
		if l.key.renews != other.key.renews {
			return l.key.renews
		}
		if first, decided := l.shares[namespaceHostOf].before(other.shares[namespaceHostOf]); decided {
			return first
		}
	}
	if pulls := l.key.pullsOf != ""; l.shares[0] == other.shares[0] && pulls != (other.key.pullsOf != "") {
		return pulls != l.shares[0].pulls
	}
	return l.served < other.served
}

// tick is called by an alarm. It frees the reserved turns that have lapsed, calls who can have a
// turn now, and sets the next alarm. Only the current alarm does so: one that an earlier alarm has
// replaced must not set another one.
func (t *Turns) tick(alarm uint64) {
	defer t.wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	if alarm != t.alarms {
		return
	}
	now := t.options.Now()
	for _, e := range t.events {
		if e.reserved() && !now.Before(e.until) {
			t.drop(e)
		}
	}
	t.next()
	t.timer = time.Time{}
	if at := t.due(now); !at.IsZero() {
		t.alarm(at)
	}
}

// due is when the next tick has something to do: a reserved turn lapses, a share's pause ends or a
// Git service may be called again. It is zero if nothing is pending. A share exists only while an
// event has a turn of it or waits for one.
func (t *Turns) due(now time.Time) (at time.Time) {
	earliest := func(next time.Time) {
		if next.After(now) && (at.IsZero() || next.Before(at)) {
			at = next
		}
	}
	for _, e := range t.events {
		if e.reserved() {
			earliest(e.until)
		}
	}
	for _, s := range t.shares {
		earliest(s.rests)
		if s.window != nil {
			earliest(s.window.closed)
		}
	}
	return at
}

// reserved reports whether a turn is kept for an event that was called and has not come.
func (e *event) reserved() bool { return e.work != nil && !e.attended }

// drop gives back what is kept for an event.
func (t *Turns) drop(e *event) {
	t.give(e.work)
	t.give(e.visit)
	e.work, e.visit = nil, nil
	t.forget(e)
}

// alarm has tick called at a time, or earlier. An alarm cannot be cancelled, so none is set further
// ahead than Reserved: those that were replaced are gone by then, however often that happens. The
// tick that comes early sets the next one.
func (t *Turns) alarm(at time.Time) {
	now := t.options.Now()
	if latest := now.Add(Reserved); at.After(latest) {
		at = latest
	}
	if !t.timer.IsZero() && !at.Before(t.timer) {
		return
	}
	t.timer = at
	t.alarms++
	current := t.alarms
	t.options.After(at.Sub(now), func() { t.tick(current) })
}

// SPDX-License-Identifier: Apache-2.0

package report

import "time"

// The functions in this file are called with the lock held.

// known returns what is known of a report's pull request and event, and whether the event waited
// before.
func (l *PendingLimiter) known(r PendingReport, now time.Time) (p *pull, t ticket, waited bool) {
	p = l.pull(r)
	if t, waited = p.tickets[r.Event]; !waited {
		if len(p.tickets) >= maxEvents {
			clear(p.tickets)
		}
		l.replace(p, r)
		t = ticket{PendingReport: r, since: now}
		p.tickets[r.Event] = t
	}
	return p, t, waited
}

// pull returns what is known of the report's pull request.
func (l *PendingLimiter) pull(r PendingReport) *pull {
	return l.pulls.GetOrCreate(r.pull, func() *pull { return &pull{tickets: map[string]ticket{}} })
}

// replace marks the events that a new event of their pull request has replaced: it is of the same
// commit, or its push has replaced theirs. A user who pushes again and again must not fill the
// Repository's budget of unsettled events with waiting ones. Of two pushes that have each replaced
// the other, it is not known here which came last.
func (l *PendingLimiter) replace(p *pull, by PendingReport) {
	for event, t := range p.tickets {
		if t.write || t.again || t.Commit != by.Commit && (t.Commit != by.before || t.before == by.Commit) {
			continue
		}
		t.replaced = true
		p.tickets[event] = t
		l.wake(event, 0)
	}
}

// end forgets an event that has nothing to report any more. A slot that no event of the pull
// request needs becomes free.
func (l *PendingLimiter) end(p *pull, r PendingReport) {
	delete(p.tickets, r.Event)
	slot := slotKey{pull: r.pull}
	if _, has := l.slots.Get(slot); has && len(p.tickets) == 0 {
		l.slots.Delete(slot)
		next, _ := l.next.Get(r.installation)
		l.next.Put(r.installation, next.Add(-Interval))
	}
}

// wait returns how long a pull request waits for its slot. It gets one if it has none.
func (l *PendingLimiter) wait(key slotKey, r PendingReport, now time.Time) time.Duration {
	return l.slots.GetOrCreate(key, func() time.Time { return l.slot(r.installation, now) }).Sub(now)
}

// slot returns when an installation may send a report. Unused slots add up to Burst.
func (l *PendingLimiter) slot(installation string, now time.Time) time.Time {
	next, _ := l.next.Get(installation)
	slot := latest(next, now.Add(-(Burst-1)*Interval))
	l.next.Put(installation, slot.Add(Interval))
	return slot
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

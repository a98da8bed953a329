// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"cmp"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const (
	// maxRefused is how often a delivery is sent again that is refused while others are taken, as
	// of GitHub's (docs/adr/0030). An outage refuses nobody, however long.
	maxRefused = 8
	// secondAfter is when a delivery is sent the third time, later ones after retryAfter, twice
	// that and so on, at most retryLater.
	secondAfter = 20 * time.Second
	retryAfter  = 5 * time.Minute
	retryLater  = time.Hour
	// awayAfter is how long nothing is sent after something that was sent again has failed, twice
	// that after the second and so on, at most retryLater: GitLab pauses a webhook whose calls fail
	// four times in a row, and what comes then is lost.
	awayAfter = 5 * time.Minute
	// overlap is how long an attempt may take until it shows in the log, and one with a smaller id
	// after it.
	overlap = 2 * time.Minute
)

// missed is a delivery that nobody has acknowledged.
type missed struct {
	guid string
	// id is the newest attempt's, first the oldest one's, which was made at this time.
	id, first int64
	at        time.Time
	// tries is how many attempts there were after the first, and refused how many of them failed
	// although others have succeeded since the one before.
	tries, refused int
	// tried is when this process had it sent again last, or tried to, zero for never; unsent is how
	// often the service has failed to since.
	tried  time.Time
	unsent int
}

// log is what is known of the log of a webhook.
type log struct {
	hook   int64
	missed []missed // in the order in which they are sent again
	// done are those among the failed ones that need nothing more: they have succeeded since, or
	// are given up. Those of unwritten are given up, and that is not written down yet.
	done      map[string]bool
	unwritten []string
	old
	// through is the id up to which all attempts are accounted for. It becomes what was the newest
	// at markedAt, when that is long ago.
	through, newest, marked int64
	markedAt                time.Time
	// before is the newest attempt of the first look that has no time.
	before int64
	// stale is true when attempts were made since the log was read.
	stale bool
	// last is when something was sent again last.
	last time.Time
	// away counts what was sent again and failed, in a row, and back is when something may be sent
	// again after that.
	away int
	back time.Time
	// answered is true when the last of these was answered, and there when a receiver last said
	// that it is there.
	answered bool
	there    time.Time
}

// heard notes that a receiver says that it is there. It says so as well when it has refused what
// was just sent again: that is repeated later and later.
func (l *log) heard(at time.Time) {
	l.there = at
	switch {
	case l.away == 0:
	case l.answered:
		l.back = earliest(l.back, l.last.Add(secondAfter<<min(l.away-1, 8)))
	default:
		l.away, l.back = 0, time.Time{}
	}
}

// next returns the delivery that is to be sent again next, and when; nil and zero when there is
// none.
func (l *log) next(now time.Time) (next *missed, at time.Time) {
	for i := range l.missed {
		m := &l.missed[i]
		due := l.due(m)
		if next == nil || due.Before(at) && at.After(now) {
			next, at = m, due
		}
	}
	if next == nil {
		return nil, time.Time{}
	}
	return next, latest(latest(at, l.back), now)
}

// due is when a delivery may be sent again.
func (l *log) due(m *missed) time.Time {
	switch {
	case m.tried.IsZero():
		return time.Time{}
	case m.tries+m.unsent <= 1, m.refused+m.unsent == 0 && l.there.After(m.tried):
		return m.tried.Add(secondAfter)
	}
	return m.tried.Add(min(retryLater, retryAfter<<min(m.tries+m.unsent-2, 10)))
}

// took notes that a delivery was sent again and what it was answered with, 0 for no answer.
func (l *log) took(guid string, status int, now time.Time) {
	l.last = now
	if answer := (provider.Attempt{Status: status}); answer.Succeeded() {
		l.end(guid)
		l.away, l.back = 0, time.Time{}
		return
	}
	l.answered = status != 0
	l.back = now.Add(min(retryLater, awayAfter<<min(l.away, 10)))
	l.away++
	l.stale = true
	for i := range l.missed {
		if m := &l.missed[i]; m.guid == guid {
			m.tries++
			m.tried, m.unsent = now, 0
		}
	}
	l.sort()
}

// notSent notes that the service failed to send a delivery again: others come first now. It may
// have sent it nevertheless.
func (l *log) notSent(guid string, now time.Time) {
	l.stale = true
	for i := range l.missed {
		if m := &l.missed[i]; m.guid == guid {
			m.tried = now
			m.unsent++
		}
	}
	l.sort()
}

// taken ends the waiting if the newest attempts show that it is over: one was taken, after the last
// failure and after what was sent again last. A receiver that has answered shows it with an event,
// because it takes what starts nothing without the API server. That the service calls a paused
// webhook again shows nothing, because the pause may just have ended.
func (l *log) taken(newest []provider.Attempt, now time.Time) {
	shows := func(a provider.Attempt) bool {
		return a.Succeeded() && (a.Starts || !l.answered) && a.ID > l.newest && (a.At.IsZero() || a.At.After(l.last))
	}
	if l.away > 0 && slices.ContainsFunc(newest, shows) {
		l.away, l.back, l.there = 0, time.Time{}, now
	}
}

// end notes that a delivery needs nothing more.
func (l *log) end(guid string) {
	l.done[guid] = true
	is := func(m missed) bool { return m.guid == guid }
	l.missed, l.toTell = slices.DeleteFunc(l.missed, is), slices.DeleteFunc(l.toTell, is)
}

// sort puts those first that were tried least, the older ones before the newer ones.
func (l *log) sort() {
	slices.SortStableFunc(l.missed, func(a, b missed) int {
		return cmp.Or(cmp.Compare(a.tries+a.unsent, b.tries+b.unsent), cmp.Compare(a.first, b.first))
	})
}

// unseen forgets what is missed, so that nothing is sent again: the webhook is not called, or
// cannot be seen. When it can, the log is read anew.
func (l *log) unseen() {
	l.missed, l.stale = nil, true
	l.through, l.marked = 0, 0
}

// saw takes the failed attempts since through, and returns the oldest one that has to be accounted
// for; 0 if nothing has changed.
func (l *log) saw(failed []provider.Attempt) (oldest int64) {
	news := l.stale || len(l.unsure) > 0
	for _, a := range failed {
		l.newest = max(l.newest, a.ID)
		known := slices.ContainsFunc(l.missed, func(m missed) bool { return m.guid == a.GUID })
		if a.Starts && !known && !l.done[a.GUID] && !l.over[a.GUID] {
			news = true
			oldest = least(oldest, a.ID)
		}
	}
	if !news {
		return 0
	}
	for _, m := range l.missed {
		oldest = least(oldest, m.first)
	}
	for _, first := range l.unsure {
		oldest = least(oldest, first)
	}
	return oldest
}

// accounted notes that all failed attempts since through are accounted for.
func (l *log) accounted(failed []provider.Attempt, now time.Time) {
	l.stale = false
	if now.Sub(l.markedAt) < overlap {
		return
	}
	l.markedAt, l.through, l.marked = now, l.marked, l.newest
	current := map[string]bool{}
	for _, a := range failed {
		current[a.GUID] = l.done[a.GUID]
	}
	l.done = current
}

func least(a, b int64) int64 {
	if a == 0 || b < a {
		return b
	}
	return a
}

// account replaces what is missed by what the log has: the attempts since the oldest that matters,
// oldest first. It is a function of the log, but for when this process has tried, and for what is
// older than all that was read of it.
func (l *log) account(attempts []provider.Attempt) {
	before := map[string]missed{}
	found := map[string]*missed{}
	for _, m := range l.missed {
		before[m.guid] = m
	}
	order := l.older(attempts, found)
	l.missed = nil
	succeeded := int64(0) // the newest success before the attempt
	for i := range attempts {
		a := &attempts[i]
		m := found[a.GUID]
		switch {
		case !a.Starts: // they are answered without the API server
		case a.Succeeded():
			succeeded = a.ID
			delete(found, a.GUID)
			l.done[a.GUID] = true
		case l.done[a.GUID], l.over[a.GUID]:
		case m == nil:
			found[a.GUID] = &missed{
				guid:   a.GUID,
				id:     a.ID,
				first:  a.ID,
				at:     a.At,
				tried:  before[a.GUID].tried,
				unsent: before[a.GUID].unsent,
			}
			order = append(order, a.GUID)
		default:
			m.again(a.ID, succeeded)
		}
	}
	for _, guid := range order {
		if m := found[guid]; m != nil {
			l.missed = append(l.missed, *m)
		}
	}
	l.sort()
	if len(
		l.missed,
	) > maxMissed { // a tenant may have the server: what was tried least is kept, and the rest is read again
		first := l.missed[maxMissed].first
		for _, m := range l.missed[maxMissed:] {
			first = min(first, m.first)
		}
		l.through, l.marked = min(l.through, first-1), min(l.marked, first-1)
		l.missed = l.missed[:maxMissed]
	}
}

// maxMissed is how many missed deliveries of a webhook are remembered: twice what one look reads.
const maxMissed = 2000

// older finds what is missed and older than all that was read of the log.
func (l *log) older(attempts []provider.Attempt, found map[string]*missed) (order []string) {
	for _, m := range l.missed {
		if len(attempts) > 0 && m.first < attempts[0].ID && !l.over[m.guid] {
			found[m.guid] = &m
			order = append(order, m.guid)
		}
	}
	return order
}

// again counts a later attempt of the same delivery. Succeeded is the newest success of another one
// before it.
func (m *missed) again(id, succeeded int64) {
	if id <= m.id {
		return
	}
	m.tries++
	if succeeded > m.id {
		m.refused++
	}
	m.id = id
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func newLog(hook int64) log { return log{hook: hook, done: map[string]bool{}} }

// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const (
	// askEvery is the time between two redeliveries that are asked for: each costs 5 of the 900
	// points that GitHub grants within a minute, and looks take the rest. What GitHub limits more
	// the provider waits for.
	askEvery = 500 * time.Millisecond
	// probeEvery is the same while nobody seems to be there: one is asked for to find out.
	probeEvery = time.Minute
	// answerWithin is how long it usually takes at most until an attempt that was asked for shows
	// in the log. When it does not, the next is asked for after twice that and so on, at most
	// retryAtMost: the service is late, or does not make it.
	answerWithin = time.Minute
	// secondAfter is when a delivery is asked for the second time, later ones after retryAfter,
	// twice that and so on, at most retryAtMost.
	secondAfter = 20 * time.Second
	retryAfter  = 5 * time.Minute
	retryAtMost = time.Hour
)

// ask is a redelivery that this process has asked for.
type ask struct {
	at time.Time
	// tries is what the ledger said then.
	tries int
	// before is how often it was asked for before without an attempt in the log.
	before int
}

// line is what a process knows of whom it asks for. All of it is advice: who knows nothing asks
// once more than necessary.
type line struct {
	asked map[string]ask // by GUID
	// served is when a delivery of a repository was last asked for, and tenants the same of a
	// tenant: these take turns, and the repositories of one.
	served  map[int64]time.Time
	tenants map[string]time.Time
	// gone are those that the service does not have any more.
	gone map[string]bool
	// told are those that were told to be given up, as long as that is not written down.
	told map[string]bool
	// last is when the last call that asks for something began.
	last time.Time
	// away is true when the newest attempt is one that was asked for, and has failed.
	away bool
	// there is when a receiver last said that it is there.
	there time.Time
	// succeeded is when an attempt last succeeded. Receivers do not say that they are there when
	// they have noticed nothing, as of an outage of DNS.
	succeeded time.Time
}

func newLine() line {
	return line{
		asked:   map[string]ask{},
		served:  map[int64]time.Time{},
		tenants: map[string]time.Time{},
		gone:    map[string]bool{},
		told:    map[string]bool{},
	}
}

// next returns the delivery that is to be asked for next, and when; nil when there is none.
func (l *line) next(missing []missed, now time.Time) (next *missed, at time.Time) {
	every := askEvery
	if l.away {
		every = probeEvery
	}
	free := l.last.Add(every)
	for i := range missing {
		m := &missing[i]
		if m.GaveUp || l.gone[m.GUID] {
			continue
		}
		due := latest(l.due(m), free)
		switch {
		case next == nil, due.Before(at) && at.After(now):
		case due.After(now), !l.before(m, next):
			continue
		}
		next, at = m, due
	}
	return next, at
}

// before tells whose turn it is.
func (l *line) before(m, other *missed) bool {
	if its, others := l.tenants[m.Tenant], l.tenants[other.Tenant]; !its.Equal(others) {
		return its.Before(others)
	}
	return l.served[m.Repository].Before(l.served[other.Repository])
}

// due is when a delivery may be asked for.
func (l *line) due(m *missed) time.Time {
	asked, known := l.asked[m.GUID]
	switch {
	case known && asked.tries == m.Tries: // its outcome is not known
		return asked.at.Add(min(retryAtMost, answerWithin<<min(asked.before, 10)))
	case m.Tries == 0:
		return time.Time{}
	}
	last := latest(m.Last, asked.at)
	if m.Tries == 1 || m.Refused == 0 && latest(l.there, l.succeeded).After(last) {
		return last.Add(secondAfter)
	}
	return last.Add(min(retryAtMost, retryAfter<<min(m.Tries-2, 10)))
}

// learn takes note of the newest attempt in the log, which was not there before.
func (l *line) learn(newest *provider.Attempt) {
	if newest.Succeeded() {
		l.away = false
		return
	}
	if asked, known := l.asked[newest.GUID]; known && asked.at.After(l.there) {
		l.away = true
	}
}

// heard notes that a receiver is there, and that something may be missed.
func (l *line) heard(now time.Time) { l.there, l.away = now, false }

// took notes that a delivery was asked for.
func (l *line) took(m *missed, now time.Time) {
	a := ask{at: now, tries: m.Tries}
	if last, known := l.asked[m.GUID]; known && last.tries == m.Tries {
		a.before = last.before + 1
	}
	l.asked[m.GUID] = a
	l.served[m.Repository], l.tenants[m.Tenant] = now, now
}

// waits reports whether the outcome of something that was asked for is not known yet.
func (l *line) waits(missing []missed, now time.Time) bool {
	for i := range missing {
		asked, known := l.asked[missing[i].GUID]
		if known && asked.tries == missing[i].Tries && now.Before(asked.at.Add(answerWithin)) {
			return true
		}
	}
	return false
}

// forget drops what is known of deliveries that are not missed any more, when the others are
// written down.
func (l *line) forget(missing []missed) {
	was := *l
	*l = newLine()
	l.last, l.away, l.there, l.succeeded = was.last, was.away, was.there, was.succeeded
	for i := range missing {
		m := &missing[i]
		if a, known := was.asked[m.GUID]; known {
			l.asked[m.GUID] = a
		}
		if at, known := was.served[m.Repository]; known {
			l.served[m.Repository] = at
		}
		if at, known := was.tenants[m.Tenant]; known {
			l.tenants[m.Tenant] = at
		}
	}
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

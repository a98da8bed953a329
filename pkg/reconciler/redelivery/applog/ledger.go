// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const (
	// maxMissed bounds the ledger: about 170 bytes each, so that it fits twice into the 1 MiB of a
	// ConfigMap.
	maxMissed = 3000
	// maxGivenUp of them may be given up, those that were tried last: whoever forgets one gives it
	// up again if the log is read anew.
	maxGivenUp = 500
	// remembered is how long a delivery that is given up stays after its last attempt: as long as
	// GitHub's log lists that, which is three days, on an Enterprise Server seven, and a day more.
	remembered = 8 * 24 * time.Hour
	// maxRefused is how often a delivery is asked for that is refused while others are taken: for
	// more than three hours. Half of the receivers may be without the API server for so long, or a
	// tenant above its budget, and neither is the delivery's fault.
	maxRefused = 8
	// overlap is read again of what was read: an attempt shows in the log when it has ended, 10 s
	// after it began at most, and not on all of the service's servers at once.
	overlap = 2 * time.Minute
)

// ledger is what is known of the deliveries of an App. It is durable, and made of the service's log
// alone: a ledger that is lost or of an hour ago becomes the same one when the log is read again.
// All times are the service's.
type ledger struct {
	// Through is the time of the newest attempt that is accounted for, with all before it but what
	// is Unread.
	Through time.Time `json:"through"`
	// Unread is a part of the log before Through that is still to be read.
	Unread unread `json:"unread,omitzero"`
	// Succeeded is the time of the newest attempt that succeeded. Like Through, it is never later
	// than now.
	Succeeded time.Time `json:"succeeded"`
	// Missed are the deliveries without success, in the order of their first attempts.
	Missed []missed `json:"missed,omitempty"`
}

// unread is a part of the log that was further back than one look reads. The zero value is none.
type unread struct {
	// Cursor is the page to go on with, towards older ones; "" for the newest page of the log.
	Cursor string `json:"cursor,omitempty"`
	// Since is the time of the oldest attempts that belong to it.
	Since time.Time `json:"since"`
}

func (u unread) none() bool { return u.Since.IsZero() }

// missed is a delivery that nobody has acknowledged.
type missed struct {
	GUID string `json:"guid"`
	// ID is the attempt's that is repeated.
	ID int64 `json:"id"`
	// Repository is the service's number, and Tenant the namespace of the Repository that serves
	// it, "" while none is known.
	Repository int64  `json:"repository,omitempty"`
	Tenant     string `json:"-"`
	// First and Last are the times of its first and of its last attempt.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Tries is how many attempts there were after the first.
	Tries int `json:"tries,omitempty"`
	// Refused is how many of them failed although others have succeeded since the one before. An
	// outage refuses nobody.
	Refused int `json:"refused,omitempty"`
	// GaveUp is set when it is not asked for any more.
	GaveUp bool `json:"gaveUp,omitempty"`
}

// from is how far back the log is to be read.
func (l *ledger) from() time.Time { return l.Through.Add(-overlap) }

// readFrom lets the log be read again from then on. What has succeeded since is then learned from
// it in its order: remembered, it would count as a success before each attempt that is read again,
// and an outage would have refused what it kept away.
func (l *ledger) readFrom(at time.Time) {
	l.Through = at
	if l.Succeeded.After(at) {
		l.Succeeded = time.Time{}
	}
}

// account takes attempts of the log, oldest first. Those that it has taken before change nothing.
// One that is later than now was made before the service's clock was set back: it is read again
// until its time has come, because what is made meanwhile is listed as older.
func (l *ledger) account(attempts []provider.Attempt, now time.Time) {
	at := make(map[string]int, len(l.Missed))
	for i := range l.Missed {
		at[l.Missed[i].GUID] = i
	}
	through, before := l.Through, l.Succeeded
	var succeeded time.Time // the newest success before the attempt
	for i := range attempts {
		a := &attempts[i]
		if a.At.After(through) { // what is before that may be older than the newest success that is known
			succeeded = latest(succeeded, before)
		}
		passed := !a.At.After(now)
		if passed {
			l.Through = latest(l.Through, a.At)
		}
		n, known := at[a.GUID]
		switch {
		case a.Succeeded():
			if known {
				l.Missed[n].GUID = "" // and dropped below
				delete(at, a.GUID)
			}
			if a.Starts { // the others are answered without the API server
				succeeded = latest(succeeded, a.At)
				if passed {
					l.Succeeded = latest(l.Succeeded, a.At)
				}
			}
		case !a.Starts:
		case known:
			l.Missed[n].failedAgain(a, succeeded)
		default:
			at[a.GUID] = len(l.Missed)
			l.Missed = append(l.Missed, missed{GUID: a.GUID, ID: a.ID, Repository: a.Repository, First: a.At, Last: a.At})
		}
	}
	l.Missed = slices.DeleteFunc(l.Missed, func(m missed) bool { return m.GUID == "" })
}

// failedAgain takes note of an attempt that failed, unless it is noted already.
func (m *missed) failedAgain(a *provider.Attempt, succeeded time.Time) {
	if !a.At.After(m.Last) {
		return
	}
	if succeeded.After(m.Last) {
		m.Refused++
	}
	m.Last = a.At
	m.Tries++
}

// ended is a delivery that was just given up, and why.
type ended struct {
	missed

	why string
}

// giveUp gives up what was refused too often, and what the service does not have any more.
func (l *ledger) giveUp(gone map[string]bool) (all []ended) {
	for i := range l.Missed {
		m, why := &l.Missed[i], ""
		switch {
		case m.GaveUp:
			continue
		case m.Refused >= maxRefused:
			why = fmt.Sprintf("it was refused %d times when GitHub sent it again", m.Refused)
		case gone[m.GUID]:
			why = "GitHub does not have it any more"
		default:
			continue
		}
		m.GaveUp = true
		all = append(all, ended{*m, why})
	}
	return all
}

// forget drops what was given up and is not in the log any more, and of more than maxMissed the
// newest of the tenants with the most.
func (l *ledger) forget() {
	var wanted, givenUp []missed
	for _, m := range l.Missed {
		switch {
		case !m.GaveUp:
			wanted = append(wanted, m)
		case !m.Last.Before(l.Through.Add(-remembered)):
			givenUp = append(givenUp, m)
		}
	}
	slices.SortStableFunc(givenUp, func(a, b missed) int { return b.Last.Compare(a.Last) })
	givenUp = givenUp[:min(len(givenUp), maxGivenUp)]
	l.Missed = append(l.fit(wanted, maxMissed-len(givenUp)), givenUp...)
	slices.SortStableFunc(l.Missed, func(a, b missed) int { return a.First.Compare(b.First) })
}

// fit returns as many as there is room for, the oldest of each tenant, and of each of its
// repositories: nobody takes the room of another. What has no room is found again, because the log
// is then read as far back as that.
func (l *ledger) fit(wanted []missed, room int) []missed {
	if len(wanted) <= room {
		return wanted
	}
	slices.SortStableFunc(wanted, func(a, b missed) int { return a.First.Compare(b.First) })
	wanted = inTurn(wanted, func(m missed) int64 { return m.Repository })
	wanted = inTurn(wanted, func(m missed) string { return m.Tenant })
	for _, m := range wanted[room:] {
		if m.First.Before(l.Through) {
			l.readFrom(m.First)
		}
	}
	return wanted[:room]
}

// inTurn puts the first of each owner before the second ones, and so on.
func inTurn[K comparable](all []missed, owner func(missed) K) []missed {
	type ranked struct {
		missed
		rank int // among those of its owner
	}
	ranks, order := map[K]int{}, make([]ranked, 0, len(all))
	for _, m := range all {
		order = append(order, ranked{m, ranks[owner(m)]})
		ranks[owner(m)]++
	}
	slices.SortStableFunc(order, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	for i, r := range order {
		all[i] = r.missed
	}
	return all
}

// open counts what is still asked for.
func (l *ledger) open() (n int) {
	for i := range l.Missed {
		if !l.Missed[i].GaveUp {
			n++
		}
	}
	return n
}

// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/roundrobin"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

const (
	// maxMissed bounds the ledger: about 170 bytes each, so that it fits twice into the 1 MiB of a
	// ConfigMap.
	maxMissed = 3000
	// maxGivenUp of them may be given up, those with the newest attempts. One that is dropped is
	// given up again if the log is read again.
	maxGivenUp = 500
)

// ledger is what is known of the deliveries of an App. It is stored, and is a function of GitHub's
// log: one that was lost, or is an hour old, becomes the same one when the log is read again. All
// times are GitHub's.
type ledger struct {
	// Through is the time of the newest attempt that is accounted for, with all before it but the
	// Unread part.
	Through time.Time `json:"through"`
	// Unread is a part of the log before Through that is still to be read.
	Unread unread `json:"unread,omitzero"`
	// Succeeded is the time of the newest attempt that succeeded. Like Through, it is never later
	// than now.
	Succeeded time.Time `json:"succeeded"`
	// Missed are the undelivered webhooks, in the order of their first attempts.
	Missed []redelivery.Delivery `json:"missed,omitempty"`
}

// unread is a part of the log that was further back than one read. The zero value is none.
type unread struct {
	// Cursor is the next page, towards older ones; "" for the newest page of the log.
	Cursor string `json:"cursor,omitempty"`
	// Since is the time of the oldest attempts that belong to it.
	Since time.Time `json:"since"`
}

func (u unread) none() bool { return u.Since.IsZero() }

// from is how far back the log is to be read.
func (l *ledger) from() time.Time { return l.Through.Add(-redelivery.Overlap) }

// readFrom has the log read again from then on. It drops a later success, which the log has: else
// it would count as one before each attempt that is read again, and the deliveries of an outage
// would seem to be refused.
func (l *ledger) readFrom(at time.Time) {
	l.Through = at
	if l.Succeeded.After(at) {
		l.Succeeded = time.Time{}
	}
}

// account takes attempts of the log, oldest first. Attempts that it has taken before change
// nothing. An attempt later than now was made before GitHub's clock was set back. It is read again
// until its time has come, because attempts meanwhile are listed as older.
func (l *ledger) account(attempts []provider.Attempt, now time.Time) {
	at := make(map[string]int, len(l.Missed))
	for i := range l.Missed {
		at[l.Missed[i].GUID] = i
	}
	through, before := l.Through, l.Succeeded
	var succeeded time.Time // the newest success before the attempt
	for i := range attempts {
		a := &attempts[i]
		if a.At.After(through) { // before may be newer than earlier attempts
			succeeded = redelivery.Latest(succeeded, before)
		}
		passed := !a.At.After(now)
		if passed {
			l.Through = redelivery.Latest(l.Through, a.At)
		}
		n, known := at[a.GUID]
		switch {
		case a.Succeeded():
			if known {
				l.Missed[n].GUID = "" // and dropped below
				delete(at, a.GUID)
			}
			if a.Starts { // the response to others needs no API server
				succeeded = redelivery.Latest(succeeded, a.At)
				if passed {
					l.Succeeded = redelivery.Latest(l.Succeeded, a.At)
				}
			}
		case !a.Starts:
		case known:
			failedAgain(&l.Missed[n], a, succeeded)
		default:
			at[a.GUID] = len(l.Missed)
			l.Missed = append(l.Missed,
				redelivery.Delivery{GUID: a.GUID, ID: a.ID, Repository: a.Repository, First: a.At, Last: a.At})
		}
	}
	l.Missed = slices.DeleteFunc(l.Missed, func(d redelivery.Delivery) bool { return d.GUID == "" })
}

// failedAgain counts an attempt that failed, unless it is counted already.
func failedAgain(d *redelivery.Delivery, a *provider.Attempt, succeeded time.Time) {
	if !a.At.After(d.Last) {
		return
	}
	if succeeded.After(d.Last) {
		d.Refused++
	}
	d.Last = a.At
	d.Tries++
}

// givenUp is a delivery that was just given up, and why.
type givenUp struct {
	redelivery.Delivery

	why string
}

// giveUp gives up what was refused too often, and what GitHub does not have any more.
func (l *ledger) giveUp(gone map[string]bool) (all []givenUp) {
	for i := range l.Missed {
		d, why := &l.Missed[i], ""
		switch {
		case d.GaveUp:
			continue
		case d.Refused >= redelivery.MaxRefused:
			why = fmt.Sprintf("it was refused %d times when GitHub sent it again", d.Refused)
		case gone[d.GUID]:
			why = "GitHub does not have it any more"
		default:
			continue
		}
		d.GaveUp = true
		all = append(all, givenUp{*d, why})
	}
	return all
}

// forget drops what was given up and is not in the log any more. Of more than maxMissed deliveries
// it drops the newest of the namespaces with the most.
func (l *ledger) forget() {
	var wanted, givenUp []redelivery.Delivery
	for _, d := range l.Missed {
		switch {
		case !d.GaveUp:
			wanted = append(wanted, d)
		case !d.Last.Before(l.Through.Add(-redelivery.RememberedFor)):
			givenUp = append(givenUp, d)
		}
	}
	slices.SortStableFunc(givenUp, func(a, b redelivery.Delivery) int { return b.Last.Compare(a.Last) })
	givenUp = givenUp[:min(len(givenUp), maxGivenUp)]
	l.Missed = append(l.fit(wanted, maxMissed-len(givenUp)), givenUp...)
	slices.SortStableFunc(l.Missed, byFirst)
}

func byFirst(a, b redelivery.Delivery) int { return a.First.Compare(b.First) }

// fit returns as many as there is room for, the oldest of each namespace and of each of its
// repositories: no namespace takes the room of another. The others are found again, because the log
// is then read as far back as the oldest of them.
func (l *ledger) fit(wanted []redelivery.Delivery, room int) []redelivery.Delivery {
	if len(wanted) <= room {
		return wanted
	}
	slices.SortStableFunc(wanted, byFirst)
	roundrobin.Sort(wanted, func(d redelivery.Delivery) int64 { return d.Repository })
	roundrobin.Sort(wanted, func(d redelivery.Delivery) string { return d.Tenant })
	for _, d := range wanted[room:] {
		if d.First.Before(l.Through) {
			l.readFrom(d.First)
		}
	}
	return wanted[:room]
}

// wanted counts the deliveries that are still requested.
func (l *ledger) wanted() (n int) {
	for i := range l.Missed {
		if !l.Missed[i].GaveUp {
			n++
		}
	}
	return n
}

// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"cmp"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

const (
	// pauseAfter is how long a webhook is sent nothing after a resend that failed. It doubles after
	// each further one up to redelivery.RetryLater: GitLab pauses a webhook whose calls fail four
	// times in a row, and drops what comes then.
	pauseAfter = 5 * time.Minute
	// maxMissed is how many undelivered webhooks are remembered: twice what one read takes.
	maxMissed = 2000
)

// webhook is what is known of the log of a webhook.
type webhook struct {
	id     int64
	missed []redelivery.Delivery
	// done are those among the failed ones that need nothing more: they have succeeded since, or
	// are given up. Those of unwritten are given up, and that is not stored yet.
	done      map[string]bool
	unwritten []string
	expired
	// through is the id up to which all attempts are accounted for. After redelivery.Overlap it
	// becomes marked, which was the newest id at markedAt.
	through, newest, marked int64
	markedAt                time.Time
	// untimed is the newest attempt of the first read that has no time.
	untimed int64
	// stale is set when attempts were made since the log was read.
	stale bool
	// last is the time of the last resend.
	last time.Time
	// failures counts the resends in a row that failed, and resumeAt is when the next one may be
	// made. responded is set if the last one got a response.
	failures  int
	resumeAt  time.Time
	responded bool
}

func newWebhook(id int64) *webhook { return &webhook{id: id, done: map[string]bool{}} }

// signal takes the signal of a receiver, which ends the pause after failures. A receiver signals as
// well when it has just refused a resend: such a pause becomes longer each time.
func (w *webhook) signal() {
	switch {
	case w.failures == 0:
	case w.responded:
		if at := w.last.Add(redelivery.SecondAfter << min(w.failures-1, 8)); at.Before(w.resumeAt) {
			w.resumeAt = at
		}
	default:
		w.resume()
	}
}

func (w *webhook) resume() { w.failures, w.resumeAt = 0, time.Time{} }

// resent takes the response to a resend, 0 for none.
func (w *webhook) resent(guid string, status int, now time.Time) {
	w.last = now
	if a := (provider.Attempt{Status: status}); a.Succeeded() {
		w.end(guid)
		w.resume()
		return
	}
	w.responded = status != 0
	w.resumeAt = now.Add(redelivery.Doubled(pauseAfter, redelivery.RetryLater, w.failures))
	w.failures++
	w.stale = true
	for i := range w.missed {
		if w.missed[i].GUID == guid {
			w.missed[i].Tries++
		}
	}
}

// recovered reports whether one of the newest attempts shows that receivers record deliveries
// again, and then ends the pause. The attempt succeeded after the last failure and after the last
// resend. A receiver that has responded shows it with an event only, because others need no API
// server. A paused webhook that GitLab calls again shows nothing: its pause may just have ended.
func (w *webhook) recovered(newest []provider.Attempt) bool {
	shows := func(a provider.Attempt) bool {
		return a.Succeeded() && (a.Starts || !w.responded) && a.ID > w.newest && (a.At.IsZero() || a.At.After(w.last))
	}
	if w.failures == 0 || !slices.ContainsFunc(newest, shows) {
		return false
	}
	w.resume()
	return true
}

// end records that a delivery needs nothing more.
func (w *webhook) end(guid string) {
	w.done[guid] = true
	is := func(d redelivery.Delivery) bool { return d.GUID == guid }
	w.missed, w.toReport = slices.DeleteFunc(w.missed, is), slices.DeleteFunc(w.toReport, is)
}

func (w *webhook) misses(guid string) bool {
	return slices.ContainsFunc(w.missed, func(d redelivery.Delivery) bool { return d.GUID == guid })
}

// unreadable drops what is undelivered, so that nothing is resent: GitLab does not call the
// webhook, or does not show its log. Later the log is read from the start.
func (w *webhook) unreadable() {
	w.missed, w.stale = nil, true
	w.through, w.marked = 0, 0
}

// unaccounted takes the failed attempts since through, and returns the oldest one that has to be
// accounted for; 0 if nothing has changed.
func (w *webhook) unaccounted(failed []provider.Attempt) (oldest int64) {
	news := w.stale || len(w.unsure) > 0
	for _, a := range failed {
		w.newest = max(w.newest, a.ID)
		if a.Starts && !w.misses(a.GUID) && !w.done[a.GUID] && !w.over[a.GUID] {
			news = true
			oldest = least(oldest, a.ID)
		}
	}
	if !news {
		return 0
	}
	for _, d := range w.missed {
		oldest = least(oldest, d.FirstID)
	}
	for _, first := range w.unsure {
		oldest = least(oldest, first)
	}
	return oldest
}

// accounted records that all failed attempts since through are accounted for.
func (w *webhook) accounted(failed []provider.Attempt, now time.Time) {
	w.stale = false
	if now.Sub(w.markedAt) < redelivery.Overlap {
		return
	}
	w.markedAt, w.through, w.marked = now, w.marked, w.newest
	current := map[string]bool{}
	for _, a := range failed {
		current[a.GUID] = w.done[a.GUID]
	}
	w.done = current
}

// account replaces what is undelivered by what the log has: the attempts since the oldest that
// matters, oldest first. The result depends on the log alone, but for deliveries that are older
// than what was read of it.
func (w *webhook) account(attempts []provider.Attempt) {
	found := map[string]*redelivery.Delivery{}
	var order []*redelivery.Delivery
	add := func(d redelivery.Delivery) {
		found[d.GUID] = &d
		order = append(order, &d)
	}
	for _, d := range w.olderThan(attempts) {
		add(d)
	}
	succeeded := int64(0) // the newest success before the attempt
	for i := range attempts {
		a := &attempts[i]
		switch d := found[a.GUID]; {
		case !a.Starts: // their responses need no API server
		case a.Succeeded():
			succeeded = a.ID
			delete(found, a.GUID)
			w.done[a.GUID] = true
		case w.done[a.GUID], w.over[a.GUID]:
		case d == nil:
			add(redelivery.Delivery{GUID: a.GUID, ID: a.ID, FirstID: a.ID, Repository: w.id, First: a.At, Last: a.At})
		default:
			failedAgain(d, a, succeeded)
		}
	}
	w.missed = nil
	for _, d := range order {
		if found[d.GUID] == d {
			w.missed = append(w.missed, *d)
		}
	}
	w.bound()
}

// olderThan returns the undelivered webhooks whose first attempt is older than those that were
// read.
func (w *webhook) olderThan(attempts []provider.Attempt) []redelivery.Delivery {
	if len(attempts) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(w.missed), func(d redelivery.Delivery) bool {
		return d.FirstID >= attempts[0].ID || w.over[d.GUID]
	})
}

// failedAgain counts a later attempt. Succeeded is the newest success of another delivery before
// it.
func failedAgain(d *redelivery.Delivery, a *provider.Attempt, succeeded int64) {
	if a.ID <= d.ID {
		return
	}
	d.Tries++
	if succeeded > d.ID {
		d.Refused++
	}
	d.ID, d.Last = a.ID, a.At
}

// bound drops the deliveries with the most attempts if there are too many, because a user may run
// the server. The log is then read again from the oldest of them on.
func (w *webhook) bound() {
	slices.SortStableFunc(w.missed, func(a, b redelivery.Delivery) int {
		return cmp.Or(cmp.Compare(a.Tries, b.Tries), cmp.Compare(a.FirstID, b.FirstID))
	})
	for _, d := range w.missed[min(len(w.missed), maxMissed):] {
		w.through, w.marked = min(w.through, d.FirstID-1), min(w.marked, d.FirstID-1)
	}
	w.missed = w.missed[:min(len(w.missed), maxMissed)]
}

func least(a, b int64) int64 {
	if a == 0 || b < a {
		return b
	}
	return a
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

const (
	// PullInterval is the time between two reports for one pull request.
	PullInterval = time.Minute
	// Burst is how many reports an installation sends at once: a quarter of the 80 requests that
	// create content which GitHub allows it in a minute
	// (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
	Burst = 20
	// Interval is the time between two reports after that. A report with its look-ups takes two or
	// three calls: 1,800 an hour at most, about a third of the 5,000 that GitHub allows an
	// installation (same source).
	Interval = 6 * time.Second
	// pause is how long an installation sends none after the service has said that it is called too
	// often.
	pause = time.Minute
	// asking is how long the question for the head of a pull request may take before another event
	// asks.
	asking = 30 * time.Second
	// lag is how long a replica of the Git service may not have a push: what it says is the head
	// supersedes only commits that were known before.
	lag = git.Lag
	// soon is when an event that waits for the answer to another one's question asks again.
	soon = time.Second
	// maxEvents bounds the remembered events of one pull request; forgetting them costs reports.
	maxEvents = 100
	// maxSlots bounds the remembered slots, to the largest open-events-cap. Each belongs to an
	// unsettled event, as far as is known.
	maxSlots = 200_000
)

// PendingReport is the report of one event that waits for approval.
type PendingReport struct {
	// Event is the event's name.
	Event string
	// Commit is the commit that it is about.
	Commit string
	// before is the commit that the event's push has replaced, "" if there is none.
	before string
	// pull and installation identify the pull request and the account that is rate-limited.
	pull, installation string
	// again is true if the event was redelivered.
	again bool
}

// PendingReportOf returns the report of an event.
func PendingReportOf(event *v1alpha1.GitEvent) PendingReport {
	spec := &event.Spec
	r := PendingReport{
		Event:        event.Name,
		Commit:       spec.SHA,
		before:       spec.Before,
		again:        v1alpha1.Reopened(event.Name),
		installation: fmt.Sprintf("%s/%d", spec.Host, spec.InstallationID),
	}
	if spec.InstallationID == 0 { // each namespace has a token of its own
		r.installation = spec.Host + " " + spec.Repository.Namespace
	}
	r.pull = fmt.Sprintf("%s %s %s", spec.Host, spec.Project.URL, spec.HeadRef)
	if spec.PullRequest != nil {
		r.pull = fmt.Sprintf("%s %s #%d", spec.Host, spec.Project.URL, spec.PullRequest.Number)
	}
	return r
}

// Answer says whether a report is sent.
type Answer int

// The answers. Wait comes with a time.
const (
	// Write: send it now.
	Write Answer = iota
	// Needless: the pull request shows it at this commit, or has another head now.
	Needless
	// Confirm: ask whether the commit is still the pull request's head, call Head with the answer,
	// and ask again.
	Confirm
	// Wait: ask again later.
	Wait
)

// PendingLimiter limits what is sent to a Git service because of untrusted users: that their pull
// requests wait for approval (S7). A user who opens many pull requests and pushes to all of them at
// once must not exhaust the rate limits that the reports of runs need. It is only a hint: a new
// process sends a report once more, and no report that is true is dropped. Safe for concurrent use.
type PendingLimiter struct {
	// wake makes an event ask again.
	wake func(event string, after time.Duration)

	mu    sync.Mutex
	pulls recent.Map[string, *pull]
	next  recent.Map[string, time.Time] // when an installation may send the next report
	// slots are when the installation may send what a pull request waits for. They are not part of
	// pulls: a pull request that is forgotten while it waits must not join the end of the queue.
	slots recent.Map[slotKey, time.Time]
}

// slotKey is a pull request that waits, to be reported or to have a command answered.
type slotKey struct {
	pull  string
	reply bool
}

// NewPendingLimiter returns a limiter. wake makes an event ask again.
func NewPendingLimiter(wake func(event string, after time.Duration)) *PendingLimiter {
	return &PendingLimiter{wake: wake, slots: recent.Map[slotKey, time.Time]{Max: maxSlots}}
}

// pull is what is known of a pull request.
type pull struct {
	shown string    // the commit whose check shows it
	wrote time.Time // when the last report was started
	asks  time.Time // when the Git service was last asked for the head
	head  string    // its last answer
	asked time.Time // when that was requested; before asks while an answer is awaited
	// tickets are those of the events that wait or send.
	tickets map[string]ticket
	reply   lastReply // to untrusted users
	why     lastReply // to /why
}

// lastReply is what is known of the answers to limited commands.
type lastReply struct {
	event string    // the last one that may be answered
	at    time.Time // since when
}

// ticket is what is known of an event.
type ticket struct {
	PendingReport
	since time.Time
	write bool
	// replaced is true once a newer event of the pull request waits.
	replaced bool
}

// Decide returns whether a report is sent now, and for Wait after how long to ask again.
func (l *PendingLimiter) Decide(r PendingReport, now time.Time) (Answer, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, t, waited := l.known(r, now)
	switch {
	case t.write:
		return Write, 0
	case t.replaced, p.shown == r.Commit && !r.again, p.head != r.Commit && t.since.Add(lag).Before(p.asked):
		l.end(p, r)
		return Needless, 0
	case now.Before(p.wrote.Add(PullInterval)):
		return Wait, p.wrote.Add(PullInterval).Sub(now)
	}
	slot := slotKey{pull: r.pull}
	if left := l.wait(slot, r, now); left > 0 {
		return Wait, left
	}
	if waited && p.several() &&
		(p.head != r.Commit || p.asked.Before(t.since)) { // only one is the head, and the service knows which
		return p.question(now)
	}
	l.slots.Delete(slot)
	p.wrote, t.write = now, true
	p.tickets[r.Event] = t
	return Write, 0
}

// several reports whether the pull request had more than one commit lately.
func (p *pull) several() bool { return len(p.tickets) > 1 || p.shown != "" }

// question lets one event ask for the head, at intervals.
func (p *pull) question(now time.Time) (Answer, time.Duration) {
	if p.asked.Before(p.asks) && now.Before(p.asks.Add(asking)) {
		return Wait, soon
	}
	if again := p.asked.Add(PullInterval); now.Before(again) {
		return Wait, again.Sub(now)
	}
	p.asks = now
	return Confirm, soon
}

// Reply returns after how long the command of an untrusted user may be answered, 0 if it may be
// now: one per minute and pull request, in the slots that reports have. An event that may be
// answered stays allowed until another one of the pull request is.
func (l *PendingLimiter) Reply(r PendingReport, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pull(r)
	if p.reply.event == r.Event {
		return 0
	}
	if left := p.reply.left(now); left > 0 {
		return left
	}
	slot := slotKey{r.pull, true}
	if left := l.wait(slot, r, now); left > 0 {
		return left
	}
	l.slots.Delete(slot)
	p.reply = lastReply{event: r.Event, at: now}
	return 0
}

// Explain returns after how long a /why may be answered, 0 if it may be now: one per minute and
// pull request. It takes no slot from the reports.
func (l *PendingLimiter) Explain(r PendingReport, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pull(r)
	if p.why.event == r.Event {
		return 0
	}
	left := p.why.left(now)
	if left <= 0 {
		p.why = lastReply{event: r.Event, at: now}
	}
	return max(0, left)
}

// left returns how long the next answer waits.
func (l lastReply) left(now time.Time) time.Duration { return l.at.Add(PullInterval).Sub(now) }

// Head takes the Git service's answer: the head of the report's pull request, "" if that is the
// report's commit. asked is when it was requested. Call it only without an error; a failed question
// is asked again.
func (l *PendingLimiter) Head(r PendingReport, head string, asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, _, _ := l.known(r, asked)
	if head == "" {
		head = r.Commit
	}
	p.head, p.asked = head, asked
}

// Written records that the Git service shows the report.
func (l *PendingLimiter) Written(r PendingReport, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, _, _ := l.known(r, now)
	p.shown = r.Commit
	l.end(p, r)
}

// Started records that an authorized user has started runs for the report's commit: it does not
// wait for approval any more.
func (l *PendingLimiter) Started(r PendingReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pull(r).shown = r.Commit
}

// Limited records that the Git service was called too often: other reports go first.
func (l *PendingLimiter) Limited(r PendingReport, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known(r, now)
	next, _ := l.next.Get(r.installation)
	l.next.Put(r.installation, latest(next, now.Add(pause)))
}

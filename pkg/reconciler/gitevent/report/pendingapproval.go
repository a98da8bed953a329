// SPDX-License-Identifier: Apache-2.0

// Package report bounds what is written to a Git service because of people who may not start
// anything: that their pull requests wait for approval (S7). Whoever opens many and pushes to all
// of them at once must not use up the limits that the reports of runs need.
package report

import (
	"fmt"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

const (
	// PullApart is the time between two reports for one pull request.
	PullInterval = time.Minute
	// Burst is how many reports an installation takes at once: a quarter of the 80 requests that
	// make content which GitHub allows it in a minute
	// (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
	Burst = 20
	// Apart is the time between two reports after that. With its look-ups a report takes two calls,
	// or three: 1,800 an hour at most, about a third of the 5,000 that GitHub allows an
	// installation (same source).
	Interval = 6 * time.Second
	// pause is for how long an installation takes none after the service has said that it is called
	// too often.
	pause = time.Minute
	// asking is how long the question for the head of a pull request may take before another event
	// asks.
	asking = 30 * time.Second
	// lag is for how long a replica of the Git service may not have heard of a push: what it says
	// to be the head supersedes only commits that were known before.
	lag = git.Lag
	// soon is when an event comes back that waits for the answer to another one's question.
	soon = time.Second
	// maxRemembered bounds the pull requests, events and installations that are remembered;
	// forgetting costs reports.
	maxRemembered = 10_000
)

// Report is one that an event wants to make.
type PendingReport struct {
	// Event is the event's name.
	Event string
	// Commit is what it is about.
	Commit string
	// before is the commit that the event's push has replaced, "" if it was none.
	before string
	// pull and installation are the pull request and who has the limits.
	pull, installation string
	// again is true when somebody had the delivery sent again.
	again bool
}

// ReportOf is that of an event.
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

// Answer is what becomes of a report.
type Answer int

// The answers. Wait comes with a time.
const (
	// Write it now.
	Write Answer = iota
	// Needless: the pull request shows it at this commit, or has another head now.
	Needless
	// Confirm that the commit is still the pull request's head, tell it to Head, and ask again.
	Confirm
	// Wait and ask again.
	Wait
)

// Reports are those of one process. They are advice: a process that knows nothing makes a report
// once more, and no report that is true is dropped. The zero value is ready. Safe for concurrent
// use.
type PendingLimiter struct {
	// Wake lets an event ask again; nil wakes nobody.
	Wake func(event string, after time.Duration)

	mu      sync.Mutex
	pulls   map[string]*pull
	tickets map[string]ticket    // of the events that wait or write
	next    map[string]time.Time // when an installation takes the next report
}

// pull is what is known of a pull request.
type pull struct {
	shown string    // the commit that shows it
	wrote time.Time // when the last report was begun
	asks  time.Time // when the Git service was last asked for the head
	head  string    // its last answer
	asked time.Time // when it was asked for that; before asks while an answer is awaited
	slot  time.Time // when its installation takes its next report; zero if it has no slot yet
	// events are those that have a ticket.
	events map[string]struct{}
	reply  lastReply
}

// reply is what is known of the answers to commands of untrusted users.
type lastReply struct {
	event string    // the last one that may be answered
	at    time.Time // since when
	slot  time.Time // when the installation takes the next one; zero if it has no slot yet
}

// ticket is what is known of an event.
type ticket struct {
	PendingReport
	since time.Time
	write bool
	// replaced is true once another event of the pull request waits that tells more.
	replaced bool
}

// Ask returns what becomes of a report now, and for Wait after how long it is to be asked again.
func (s *PendingLimiter) Decide(r PendingReport, now time.Time) (Answer, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, t, waited := s.known(r, now)
	switch {
	case t.write:
		return Write, 0
	case t.replaced, p.shown == r.Commit && !r.again, p.head != r.Commit && t.since.Add(lag).Before(p.asked):
		s.end(r)
		return Needless, 0
	case now.Before(p.wrote.Add(PullInterval)):
		return Wait, p.wrote.Add(PullInterval).Sub(now)
	}
	if p.slot.IsZero() {
		p.slot = s.slot(r.installation, now)
	}
	if left := p.slot.Sub(now); left > 0 {
		return Wait, left
	}
	if waited && p.several() &&
		(p.head != r.Commit || p.asked.Before(t.since)) { // one is true, and the service knows which
		return p.question(now)
	}
	p.wrote, p.slot = now, time.Time{}
	t.write = true
	s.tickets[r.Event] = t
	return Write, 0
}

// several reports whether the pull request had more than one commit lately.
func (p *pull) several() bool { return len(p.events) > 1 || p.shown != "" }

// question lets one event ask for the head, once in a while.
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
// now: one in a minute of a pull request, in the slots that reports have. An event that may be
// answered may be again, until another one of the pull request is.
func (s *PendingLimiter) Reply(r PendingReport, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pull(r)
	if p.reply.event == r.Event {
		return 0
	}
	if left := p.reply.at.Add(PullInterval).Sub(now); left > 0 {
		return left
	}
	if p.reply.slot.IsZero() {
		p.reply.slot = s.slot(r.installation, now)
	}
	if left := p.reply.slot.Sub(now); left > 0 {
		return left
	}
	p.reply = lastReply{event: r.Event, at: now}
	return 0
}

// Head tells what the Git service has answered to a question that was asked at a time: the head of
// the report's pull request, "" if that is the report's commit. What fails is not told, and asked
// again.
func (s *PendingLimiter) Head(r PendingReport, head string, asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, _, _ := s.known(r, asked)
	if head == "" {
		head = r.Commit
	}
	p.head, p.asked = head, asked
}

// Written tells that the Git service shows the report.
func (s *PendingLimiter) Written(r PendingReport, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, _, _ := s.known(r, now)
	p.shown = r.Commit
	s.end(r)
}

// Started tells that somebody who may has started runs for the report's commit: it waits for
// nobody's approval any more.
func (s *PendingLimiter) Started(r PendingReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pull(r).shown = r.Commit
}

// Limited tells that the Git service was called too often: other reports go first.
func (s *PendingLimiter) Limited(r PendingReport, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known(r, now)
	s.next[r.installation] = latest(s.next[r.installation], now.Add(pause))
}

// known is called with the lock held, like all that follow.
func (s *PendingLimiter) known(r PendingReport, now time.Time) (p *pull, t ticket, waited bool) {
	p = s.pull(r)
	if t, waited = s.tickets[r.Event]; !waited {
		s.replace(p, r)
		t = ticket{PendingReport: r, since: now}
		s.tickets[r.Event] = t
		p.events[r.Event] = struct{}{}
	}
	return p, t, waited
}

// pull is what is known of the report's pull request.
func (s *PendingLimiter) pull(r PendingReport) *pull {
	if s.pulls == nil || max(len(s.pulls), len(s.tickets), len(s.next)) >= maxRemembered {
		s.pulls, s.tickets, s.next = map[string]*pull{}, map[string]ticket{}, map[string]time.Time{}
	}
	p, found := s.pulls[r.pull]
	if !found {
		p = &pull{events: map[string]struct{}{}}
		s.pulls[r.pull] = p
	}
	return p
}

// replace ends the waiting of events that a new one of their pull request has made needless: it is
// of the same commit, or its push has replaced theirs. Whoever pushes again and again must not fill
// the Repository's budget of open events with those that wait. Of two pushes that have each
// replaced the other, nobody knows here which came last.
func (s *PendingLimiter) replace(p *pull, by PendingReport) {
	for event := range p.events {
		t := s.tickets[event]
		if t.write || t.again || t.Commit != by.Commit && (t.Commit != by.before || t.before == by.Commit) {
			continue
		}
		t.replaced = true
		s.tickets[event] = t
		if s.Wake != nil {
			s.Wake(event, 0)
		}
	}
}

// end forgets an event that has nothing to report any more. A slot that no event of the pull
// request needs is another's.
func (s *PendingLimiter) end(r PendingReport) {
	p := s.pulls[r.pull]
	delete(s.tickets, r.Event)
	delete(p.events, r.Event)
	if len(p.events) == 0 && !p.slot.IsZero() {
		p.slot = time.Time{}
		s.next[r.installation] = s.next[r.installation].Add(-Interval)
	}
}

// slot returns when an installation takes a report. What it did not take in time adds up to Burst.
func (s *PendingLimiter) slot(installation string, now time.Time) time.Time {
	slot := latest(s.next[installation], now.Add(-(Burst-1)*Interval))
	s.next[installation] = slot.Add(Interval)
	return slot
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

const (
	// maxPages bounds one read, 30,000 attempts at GitHub: later reads go on with older ones.
	// GitHub allows 900 calls a minute.
	maxPages = 300
	// roomForUnread is how many deliveries the ledger may hold while its unread part is read. The
	// rest is for new ones: without room for these, the log would be read again from far back.
	roomForUnread = maxMissed / 2
	// githubPage is the most deliveries of a page at GitHub. While the ledger has room for so many,
	// each read takes at least one page of the unread part, however many deliveries of one
	// namespace are undelivered: those of another one may grow old in it.
	githubPage = 100
	// remedy is for the owner of a delivery that is given up.
	remedy = "Its responses are in the App's settings at GitHub, under Advanced: fix what they name, then press Redeliver there."
)

// read reads the log since the last read, and a piece of its unread part. It stores what is
// undelivered, and gives up what cannot be delivered.
func (s *source) read(ctx context.Context, log provider.DeliveryLog) error {
	l, was, err := s.store.load(ctx)
	if err != nil {
		return err
	}
	now := s.clock.Now()
	if l.from().After(now) { // the clock was set back after that was stored
		l.readFrom(now.Add(-redelivery.ReadEvery))
	}
	before := l.Through
	attempts, left, err := s.attempts(ctx, log, &l)
	if err != nil {
		return err
	}
	for i := range attempts {
		if a := &attempts[i]; a.Starts && a.At.After(before) {
			s.learn(a)
		}
	}
	l.account(attempts, now)
	l.Unread = left
	s.queue.Recovered = redelivery.Latest(s.queue.Recovered, l.Succeeded)
	served := s.servedAt(s.baseURL())
	served.assign(&l)
	for _, d := range l.giveUp(s.gone) {
		s.report(ctx, d, served)
	}
	l.forget()
	if err := s.store.save(ctx, l, was); err != nil {
		return err
	}
	s.ledger = l
	s.queue.Prune(l.Missed)
	clear(s.gone)
	clear(s.reported)
	if l.Unread.none() { // else the next read may have as many pages; of a full ledger it reads far back
		s.schedule.Pages = 1 + (s.schedule.Pages-1)*newer(attempts, l.from())/max(1, len(attempts))
	}
	return nil
}

// learn takes a new attempt: one that was requested and failed means that no receiver is reachable.
func (s *source) learn(newest *provider.Attempt) {
	if newest.Succeeded() {
		s.unreachable = false
		return
	}
	if at, requested := s.queue.RequestedAt(newest.GUID); requested && at.After(s.schedule.Signalled) {
		s.unreachable = true
	}
}

// newer counts the attempts since then.
func newer(attempts []provider.Attempt, since time.Time) (n int) {
	for i := range attempts {
		if !attempts[i].At.Before(since) {
			n++
		}
	}
	return n
}

// attempts returns the attempts since the last read and a piece of the unread part, oldest first;
// and what is left unread.
func (s *source) attempts(
	ctx context.Context, log provider.DeliveryLog, l *ledger,
) (all []provider.Attempt, left unread, err error) {
	s.schedule.Pages = 0
	all, left, err = s.walk(ctx, log, unread{Since: l.from()}, math.MaxInt)
	if err != nil {
		return nil, unread{}, err
	}
	if !left.none() {
		s.logger.Infow("GitHub's log is longer than one read: later reads go on", "attempts", len(all), "since", left.Since)
	}
	switch {
	case l.Unread.none():
	case !left.none(): // all from the next page to the end of the older part; some of it may be read twice
		if l.Unread.Since.Before(left.Since) {
			left.Since = l.Unread.Since
		}
	default:
		var older []provider.Attempt
		used := len(l.Missed) + failures(all)
		older, left = s.readOn(ctx, log, l.Unread, max(roomForUnread-used, min(githubPage, maxMissed-used)))
		all = append(all, older...)
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b provider.Attempt) int { return a.At.Compare(b.At) })
	return all, left, nil
}

// readOn reads a piece of the unread part, with as many failures as there is room for. A failure
// keeps what the read has found already. GitHub may have forgotten a cursor that fails at once, so
// the next read starts over with the newest page; after a rate limit it does not.
func (s *source) readOn(
	ctx context.Context, log provider.DeliveryLog, part unread, room int,
) ([]provider.Attempt, unread) {
	if end, limited := ctx.Deadline(); limited { // half of the time is for storing what is found
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-time.Until(end)/2))
		defer cancel()
	}
	older, left, err := s.walk(ctx, log, part, room)
	if err != nil {
		s.logger.Warnw("reading an older part of GitHub's log failed", "since", left.Since, "error", err.Error())
		if left.Cursor == part.Cursor && !fault.Is(err, fault.Throttled) && ctx.Err() == nil {
			left.Cursor = ""
		}
	}
	return older, left
}

// walk reads a part of the log, newest first, and returns what is left of it. It stops after
// maxPages, before a page with more failures than there is room for, and at an error.
func (s *source) walk(
	ctx context.Context, log provider.DeliveryLog, part unread, room int,
) (all []provider.Attempt, left unread, err error) {
	for left = part; s.schedule.Pages < maxPages && room > 0; {
		page, next, err := log.Page(ctx, left.Cursor)
		if err != nil {
			return all, left, err
		}
		s.schedule.Pages++
		if n := len(page); n > 0 && page[n-1].At.Before(part.Since) {
			next = "" // all that follow are older, too
		}
		// An attempt that was made late may be listed where it was due, so an older one may come
		// before another that is not.
		page = slices.DeleteFunc(page, func(a provider.Attempt) bool { return a.At.Before(part.Since) })
		if room -= failures(page); room < 0 {
			return all, left, nil
		}
		all = append(all, page...)
		if next == "" {
			return all, unread{}, nil
		}
		left.Cursor = next
	}
	return all, left, nil
}

// failures counts the attempts that may be of an undelivered webhook.
func failures(attempts []provider.Attempt) (n int) {
	for i := range attempts {
		if attempts[i].Starts && !attempts[i].Succeeded() {
			n++
		}
	}
	return n
}

// report tells the owner of the repository that a delivery is given up. It does so before that is
// stored: a process that ends in between reports it twice rather than never.
func (s *source) report(ctx context.Context, d givenUp, served served) {
	if s.reported[d.GUID] {
		return // and it could not be stored
	}
	s.reported[d.GUID] = true
	s.metrics.GaveUp(ctx)
	owner := served.owners[d.Repository]
	name := owner.Namespace + "/" + owner.Name
	s.logger.Warnw("a delivery is given up", "delivery", d.GUID, "repository", name,
		"number", d.Repository, "why", d.why)
	if repository, err := s.repositories.Repositories(owner.Namespace).Get(owner.Name); err == nil {
		redelivery.ReportGivenUp(s.recorder, repository, d.Delivery, d.why, remedy)
	}
}

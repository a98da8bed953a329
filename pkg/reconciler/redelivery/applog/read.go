// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const (
	// maxPages bounds one look, 30,000 attempts at GitHub: what is older is left to the next looks.
	// GitHub allows 900 calls a minute.
	maxPages = 300
	// roomForUnread is how many deliveries the ledger may hold while what was left unread is read:
	// the rest of its room is for what is missed meanwhile. If that had no room, the log would be
	// read again from far back.
	roomForUnread = maxMissed / 2
	// aPage is the most deliveries of a page at GitHub. While the ledger has room for so many each
	// look reads one at least, however much is missed of one tenant: another one's may grow old in
	// what is unread.
	aPage = 100
	// manyPages is as long as a look may be to be made again soon; a longer one is made again
	// later, so that looks take one call a second at most, and leave the time for asking.
	manyPages = 10
	// reasonGivenUp is of the Kubernetes Event on the Repository.
	reasonGivenUp = "DeliveryGivenUp"
)

// look reads the log since the last look, and some of what earlier looks have left unread, and
// writes down what is missed.
func (r *Reconciler) look(ctx context.Context, log provider.DeliveryLog) error {
	l, was, err := r.store.load(ctx)
	if err != nil {
		return err
	}
	now := r.clock.Now()
	if l.from().After(now) { // the clock was set back after that was written down
		l.readFrom(now.Add(-lookEvery))
	}
	before := l.Through
	attempts, left, err := r.read(ctx, log, &l)
	if err != nil {
		return err
	}
	for i := range attempts {
		if a := &attempts[i]; a.Starts && a.At.After(before) {
			r.line.learn(a)
		}
	}
	l.account(attempts, now)
	l.Unread, r.line.succeeded = left, l.Succeeded
	served := r.servedAt(r.baseURL())
	l.Missed = slices.DeleteFunc(l.Missed, func(m missed) bool { return !served.may(m.Repository) })
	for i := range l.Missed {
		l.Missed[i].Tenant = served.owners[l.Missed[i].Repository].Namespace
	}
	for _, e := range l.giveUp(r.line.gone) {
		r.tell(ctx, e, served)
	}
	l.forget()
	if err := r.store.save(ctx, l, was); err != nil {
		return err
	}
	r.ledger = l
	r.line.forget(l.Missed)
	if l.Unread.none() { // else the next look may have as many
		r.pages = 1 + (r.pages-1)*newer(
			attempts,
			l.from(),
		)/max(
			1,
			len(attempts),
		) // where the ledger is full, it is read again from far back
	}
	return nil
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

// read returns the attempts since the last look, and what is read of the unread part, oldest first;
// and what is left unread for later looks.
func (r *Reconciler) read(
	ctx context.Context,
	log provider.DeliveryLog,
	l *ledger,
) (all []provider.Attempt, left unread, err error) {
	r.pages = 0
	all, left, err = r.walk(ctx, log, unread{Since: l.from()}, math.MaxInt)
	if err != nil {
		return nil, unread{}, err
	}
	if !left.none() {
		r.logger.Infow(
			"the Git service's log of deliveries is longer than one look reads: later looks go on",
			"attempts",
			len(all),
			"since",
			left.Since,
		)
	}
	switch {
	case l.Unread.none():
	case !left.none(): // all between the page that is next and the end of the older part: some of it may be read twice
		left.Since = earliest(left.Since, l.Unread.Since)
	default:
		var older []provider.Attempt
		used := len(l.Missed) + failures(all)
		older, left = r.readOn(ctx, log, l.Unread, max(roomForUnread-used, min(aPage, maxMissed-used)))
		all = append(all, older...)
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b provider.Attempt) int { return a.At.Compare(b.At) })
	return all, left, nil
}

// readOn reads of the unread part what there is room for. That it fails keeps nobody from what the
// look has found already. A cursor that fails at once may be forgotten by the service, so the next
// look begins anew with the newest page; a limit says nothing of the cursor.
func (r *Reconciler) readOn(
	ctx context.Context,
	log provider.DeliveryLog,
	part unread,
	room int,
) ([]provider.Attempt, unread) {
	if end, limited := ctx.Deadline(); limited { // what is found has to be written down as well
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-time.Until(end)/2))
		defer cancel()
	}
	older, left, err := r.walk(ctx, log, part, room)
	if err != nil {
		r.logger.Warnw(
			"reading an older part of the Git service's log of deliveries failed; the next look goes on",
			"since",
			left.Since,
			"error",
			err.Error(),
		)
		if left.Cursor == part.Cursor && !fault.Is(err, fault.Throttled) && ctx.Err() == nil {
			left.Cursor = ""
		}
	}
	return older, left
}

// walk reads a part of the log, newest first, and returns what is left of it: when the look has
// read maxPages, before a page with more failures than there is room for, and after an error.
func (r *Reconciler) walk(
	ctx context.Context,
	log provider.DeliveryLog,
	part unread,
	room int,
) (all []provider.Attempt, left unread, err error) {
	for left = part; r.pages < maxPages && room > 0; {
		page, next, err := log.Page(ctx, left.Cursor)
		if err != nil {
			return all, left, err
		}
		r.pages++
		if n := len(page); n > 0 && page[n-1].At.Before(part.Since) {
			next = "" // and all that follow
		}
		// One that is older may come before another that is not: which was made late may be listed
		// where it was due.
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

// failures counts the attempts that a missed delivery may be found by.
func failures(attempts []provider.Attempt) (n int) {
	for i := range attempts {
		if attempts[i].Starts && !attempts[i].Succeeded() {
			n++
		}
	}
	return n
}

// tell tells whoever owns its repository that a delivery is given up: before that is written down,
// so that a process that ends in between tells it twice rather than never.
func (r *Reconciler) tell(ctx context.Context, m ended, served served) {
	if r.line.told[m.GUID] {
		return // and it could not be written down
	}
	r.line.told[m.GUID] = true
	r.metrics.gaveUp(ctx)
	owner := served.owners[m.Repository]
	r.logger.Warnw(
		"a delivery is given up",
		"delivery",
		m.GUID,
		"repository",
		owner.Namespace+"/"+owner.Name,
		"why",
		m.why,
	)
	repository, err := r.repositories.Repositories(owner.Namespace).Get(owner.Name)
	if err != nil {
		return // there is nobody to be told
	}
	r.recorder.Eventf(
		repository,
		corev1.EventTypeWarning,
		reasonGivenUp,
		"Delivery %s of %s was not recorded, and is not asked for any more: %s. Its answers are in the App's settings at GitHub, under Advanced; when what they name is mended, press Redeliver there.",
		m.GUID,
		metav1.NewTime(m.First).UTC().Format(time.RFC3339),
		m.why,
	)
}

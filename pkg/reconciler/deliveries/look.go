// SPDX-License-Identifier: Apache-2.0

package deliveries

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const (
	// maxPages bounds one look, 30,000 attempts at GitHub: what is older then is not found any more, and logged. GitHub allows
	// 900 calls a minute.
	maxPages = 300
	// manyPages is as long as a look may be to be made again soon; a longer one is made again later, so that looks take one call a
	// second at most, and leave the time for asking.
	manyPages = 10
	// reasonGivenUp is of the Kubernetes Event on the Repository.
	reasonGivenUp = "DeliveryGivenUp"
)

// look reads the log since the last look and writes down what is missed.
func (r *Reconciler) look(ctx context.Context, log provider.DeliveryLog) error {
	l, was, err := r.store.load(ctx)
	if err != nil {
		return err
	}
	if now := r.clock.Now(); l.from().After(now) { // the service's clock was set back: an Enterprise Server's may be
		l.readFrom(now.Add(-lookEvery))
	}
	before := l.Through
	attempts, err := r.read(ctx, log, l.from())
	if err != nil {
		return err
	}
	for i := range attempts {
		if a := &attempts[i]; a.Starts && a.At.After(before) {
			r.line.learn(a)
		}
	}
	l.account(attempts)
	served := servedAt(r.baseURL(), r.claims, r.repositories)
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
	r.pages = 1 + (r.pages-1)*newer(attempts, l.from())/max(1, len(attempts)) // where the ledger is full, it is read again from far back
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

// read returns the attempts of the log since then, oldest first.
func (r *Reconciler) read(ctx context.Context, log provider.DeliveryLog, since time.Time) ([]provider.Attempt, error) {
	var all []provider.Attempt
	cursor := ""
	for r.pages = 1; ; r.pages++ {
		page, next, err := log.Page(ctx, cursor)
		if err != nil {
			return nil, err
		}
		for i, a := range page {
			switch {
			case !a.At.Before(since):
				all = append(all, a) // also after an older one: which was made late may be listed where it was due
			case i == len(page)-1:
				next = "" // and all that follow
			}
		}
		if next == "" {
			break
		}
		if r.pages == maxPages {
			r.logger.Errorw("the Git service's log of deliveries is longer than what is read of it: older deliveries that were missed have to be sent again by hand",
				"attempts", len(all), "oldest", all[len(all)-1].At, "since", since)
			break
		}
		cursor = next
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b provider.Attempt) int { return a.At.Compare(b.At) })
	return all, nil
}

// tell tells whoever owns its repository that a delivery is given up: before that is written down, so that a process that ends in between
// tells it twice rather than never.
func (r *Reconciler) tell(ctx context.Context, m ended, served served) {
	if r.line.told[m.GUID] {
		return // and it could not be written down
	}
	r.line.told[m.GUID] = true
	r.metrics.gaveUp(ctx)
	owner := served.owners[m.Repository]
	r.logger.Warnw("a delivery is given up", "delivery", m.GUID, "repository", owner.Namespace+"/"+owner.Name, "why", m.why)
	repository, err := r.repositories.Repositories(owner.Namespace).Get(owner.Name)
	if err != nil {
		return // there is nobody to be told
	}
	r.recorder.Eventf(repository, corev1.EventTypeWarning, reasonGivenUp,
		"Delivery %s of %s was not recorded, and is not asked for any more: %s. Its answers are in the App's settings at GitHub, under Advanced; when what they name is mended, press Redeliver there.",
		m.GUID, metav1.NewTime(m.First).UTC().Format(time.RFC3339), m.why)
}

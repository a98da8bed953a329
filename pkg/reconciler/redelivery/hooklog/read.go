// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const (
	// maxPages bounds what one look reads, 1,000 attempts at GitLab, of what failed and of all.
	maxPages = 50
	// reasonGivenUp is of the Kubernetes Event on the Repository.
	reasonGivenUp = "DeliveryGivenUp"
)

// look reads what the service says of the webhooks that lead here, tells it, and notes what is
// missed. It returns when to look again.
func (r *Reconciler) look(ctx context.Context, m *memory, t *target, log provider.HookLog) (time.Duration, error) {
	hooks, err := log.Hooks(ctx)
	if f := fault.Of(err); f != nil && f.Reason == fault.ReasonPermissionMissing {
		m.logs.unseen()
		return deniedEvery, r.tell(ctx, t, denied(t))
	}
	if err != nil {
		return 0, err
	}
	ours := t.ours(hooks)
	if len(ours) == 0 {
		m.logs.unseen()
		return lookEvery, r.tell(ctx, t, noHook(t))
	}
	if t.project.ID != 0 && t.project.ID != ours[0].Project {
		m.logs.unseen()
		return lookEvery, nil // another project has the name now: the condition URL tells of it when an event comes
	}
	ours = m.logs.open(ours)
	if slices.ContainsFunc(ours, func(h provider.Hook) bool { return h.State != provider.HookCalled }) {
		m.heads.wanted = true
	}
	if ours[0].State != provider.HookCalled { // none of them is called
		m.logs.unseen()
		return untilPauseEnds(ours[0], r.clock.Now()), r.tell(ctx, t, notCalled(t, ours[0]))
	}
	err = r.readAll(ctx, m, ours, view{nil, t, log})
	if fault.Is(err, fault.Ignored) {
		return lookEvery, r.tell(ctx, t, noLog(t))
	}
	if err != nil {
		return 0, err
	}
	return r.account(ctx, m, ours, view{nil, t, log})
}

// readAll reads the logs of webhooks, of those that the service calls.
func (r *Reconciler) readAll(ctx context.Context, m *memory, hooks []provider.Hook, v view) error {
	for i, hook := range hooks {
		v.log = m.logs.of[i]
		if hook.State != provider.HookCalled {
			v.log.unseen()
			continue
		}
		if err := r.readOne(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// readOne notes what is missed of one webhook, and gives up what is too old or was refused too
// often.
func (r *Reconciler) readOne(ctx context.Context, v view) error {
	if err := r.read(ctx, v); err != nil {
		return err
	}
	if err := r.giveUp(
		ctx,
		v,
		slices.Clone(v.log.toTell),
		"it is so old that it would run again if it was recorded after all",
	); err != nil {
		return err
	}
	refused := slices.DeleteFunc(slices.Clone(v.log.missed), func(m missed) bool { return m.refused < maxRefused })
	return r.giveUp(ctx, v, refused, fmt.Sprintf("it was refused %d times or more when it was sent again", maxRefused))
}

// untilPauseEnds is when to look again at a webhook that is not called.
func untilPauseEnds(hook provider.Hook, now time.Time) time.Duration {
	if hook.Until.IsZero() {
		return lookEvery
	}
	return min(lookEvery, max(0, hook.Until.Sub(now))+time.Second)
}

// read accounts for what the log has since the last look.
func (r *Reconciler) read(ctx context.Context, v view) error {
	l := v.log
	for _, m := range l.missed {
		if r.old(m.at) {
			l.grownOld(m.guid, m.first, true)
		}
	}
	failed, err := r.pages(ctx, v, true, l.through)
	if err != nil {
		return err
	}
	oldest := l.saw(failed)
	if oldest == 0 {
		if err := r.readNewest(ctx, v); err != nil {
			return err
		}
		l.accounted(failed, r.clock.Now())
		return nil
	}
	all, err := r.pages(ctx, v, false, oldest-1)
	if err != nil {
		return err
	}
	l.taken(all, r.clock.Now())
	end := oldest
	if len(all) > 0 {
		// What is older than what was read is sent again if it failed: whether it has succeeded
		// since, the receiver knows.
		end = all[len(all)-1].ID
		all = append(all, slices.DeleteFunc(slices.Clone(failed), func(a provider.Attempt) bool { return a.ID >= end })...)
	}
	l.decide(all, end)
	slices.Reverse(all)
	l.account(all)
	l.accounted(failed, r.clock.Now())
	return nil
}

// readNewest looks on the first page for a delivery that was taken, while what is missed waits
// because others were not.
func (r *Reconciler) readNewest(ctx context.Context, v view) error {
	if v.log.away == 0 || len(v.log.missed) == 0 {
		return nil
	}
	newest, _, err := v.from.Attempts(ctx, v.log.hook, false, 1)
	if err != nil {
		return err
	}
	v.log.taken(newest, r.clock.Now())
	return nil
}

// view is what a log is read with.
type view struct {
	log    *log
	target *target
	from   provider.HookLog
}

// pages returns the attempts that are newer than an id, the newest ids first. Their order in the
// log is that of times, which of attempts that are made together is another one.
func (r *Reconciler) pages(ctx context.Context, v view, failed bool, after int64) ([]provider.Attempt, error) {
	byID := map[int64]provider.Attempt{} // pages move while attempts are made
	end := shareOf(ctx)
	for page, older := 1, false; !older; page++ {
		if page > maxPages || page > 1 && time.Now().After(end) {
			if failed {
				r.logger.Warnw(
					"more deliveries failed than what is read of the webhook's log: older ones have to be sent again by hand",
					"repository",
					v.target.owner.String(),
					"read",
					len(byID),
				)
			}
			break
		}
		attempts, more, err := v.from.Attempts(ctx, v.log.hook, failed, page)
		if err != nil {
			return nil, err
		}
		older = !more
		for _, a := range attempts {
			if a.ID <= after {
				older = true
				continue
			}
			byID[a.ID] = r.counted(v, a)
		}
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b provider.Attempt) int { return cmp.Compare(b.ID, a.ID) }), nil
}

// counted returns an attempt that starts something only if it counts, and notes one that is too
// old.
func (r *Reconciler) counted(v view, a provider.Attempt) provider.Attempt {
	if a.Starts && r.old(a.At) {
		v.log.grownOld(a.GUID, a.ID, isMissed(a) && !precedes(a, v.target))
	}
	a.Starts = a.Starts && r.counts(v.log, v.target, a)
	return a
}

// shareOf is until when one list is read, a quarter of the time that is left: a look that has not
// read all is worth more than one that was stopped, because the next would be stopped as well.
// GitLab may take seconds for a page of whole payloads, and calls for each of large ones.
func shareOf(ctx context.Context) time.Time {
	deadline, limited := ctx.Deadline()
	if !limited {
		deadline = time.Now().Add(reconcileTimeout)
	}
	return time.Now().Add(time.Until(deadline) / 4)
}

// counts reports whether an attempt may be one of a delivery that is missed: what came before the
// Repository was for nobody here, and what is older than the stubs of events are kept might run
// twice. Where GitLab tells no time only what comes while this process looks counts.
func (r *Reconciler) counts(l *log, t *target, a provider.Attempt) bool {
	if a.At.IsZero() {
		if l.markedAt.IsZero() { // the first look
			l.before = max(l.before, a.ID)
		}
		return a.ID > l.before
	}
	return !r.old(a.At) && !precedes(a, t)
}

// precedes reports whether an attempt was made before the Repository.
func precedes(a provider.Attempt, t *target) bool {
	return a.At.Before(t.repository.CreationTimestamp.Time)
}

// isMissed reports whether nobody took an attempt; a 4xx is an answer.
func isMissed(a provider.Attempt) bool {
	return a.Status == 0 || a.Status >= http.StatusInternalServerError
}

// old reports whether the stub of an event may be gone whose first attempt was made then.
func (r *Reconciler) old(at time.Time) bool {
	return !at.IsZero() && at.Before(r.clock.Now().Add(-r.settings().MaxWait()))
}

// sendsNothing reports whether the service refuses to send anything again. What else fails may be
// because of the one delivery.
func sendsNothing(f *fault.Error) bool {
	switch f.Reason {
	case "HookPaused", fault.ReasonPermissionMissing, fault.ReasonCredentialsRefused:
		return true
	}
	return f.Class == fault.Throttled
}

// resend has a delivery sent again.
func (r *Reconciler) resend(ctx context.Context, m *memory, v view, missing *missed) error {
	guid := missing.guid
	if r.old(missing.at) {
		v.log.grownOld(guid, missing.first, true)
		m.look = r.clock.Now()
		return nil // the look gives it up, if it has not succeeded since
	}
	status, err := v.from.Resend(ctx, v.log.hook, missing.id)
	if fault.Is(err, fault.Ignored) {
		return r.giveUp(ctx, v, []missed{*missing}, "GitLab does not send it again any more")
	}
	if f := fault.Of(err); f != nil {
		if !sendsNothing(f) {
			v.log.notSent(guid, r.clock.Now())
		}
		return err
	}
	m.logs.took(v.log, guid, status, r.clock.Now())
	if m.heads.wanted && m.logs.missing() == 0 {
		m.look = earliest(m.look, r.clock.Now().Add(settleAfter)) // what else was missed can be seen now
	}
	r.metrics.resent(ctx, status)
	r.logger.Infow("had a delivery sent again", "repository", v.target.owner.String(), "delivery", guid, "answer", status)
	return nil
}

// giveUp ends the tries for some deliveries. It tells whoever owns the Repository, unless a process
// has done so before, and then writes down that it has: one that ends in between tells it twice
// rather than never.
func (r *Reconciler) giveUp(ctx context.Context, v view, all []missed, why string) error {
	l, repository := v.log, v.target.repository
	if len(all) > 0 {
		known, err := r.givenUp.of(ctx, repository.UID)
		if err != nil {
			return err
		}
		for _, m := range all {
			l.end(m.guid)
			l.grownOld(m.guid, m.first, false) // what is read again for the sake of another one is not sent again
			if _, told := known[endOf(m.guid)]; told || slices.Contains(l.unwritten, m.guid) {
				continue
			}
			l.unwritten = append(l.unwritten, m.guid)
			r.metrics.gaveUp(ctx)
			r.logger.Warnw("a delivery is given up", "repository", v.target.owner.String(), "delivery", m.guid, "why", why)
			r.recorder.Eventf(
				repository,
				corev1.EventTypeWarning,
				reasonGivenUp,
				"Delivery %s was not recorded, and is not sent again any more: %s. Its answers are at GitLab, in Settings, Webhooks, under Recent events; when what they name is mended, press Resend Request there, or push again.",
				m.guid,
				why,
			)
		}
	}
	l.unwritten = l.unwritten[max(0, len(l.unwritten)-maxGivenUp):]
	if len(l.unwritten) == 0 || !r.givenUp.pace.AllowN(r.clock.Now(), 1) {
		return nil // a later look writes it
	}
	if err := r.givenUp.add(ctx, repository.UID, l.unwritten, r.clock.Now()); err != nil {
		return err // the next look tries again
	}
	l.unwritten = nil
	return nil
}

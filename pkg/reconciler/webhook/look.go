// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
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

// look reads what the service says of the webhook, tells it, and notes what is missed. It returns when to look again.
func (r *Reconciler) look(ctx context.Context, m *memory, t *target, log provider.HookLog) (time.Duration, error) {
	hooks, err := log.Hooks(ctx)
	if f := fault.Of(err); f != nil && f.Reason == fault.ReasonPermissionMissing {
		return deniedEvery, r.tell(ctx, t, denied(t))
	}
	if err != nil {
		return 0, err
	}
	hook, found := t.hook(hooks)
	if !found {
		return lookEvery, r.tell(ctx, t, noHook(t))
	}
	if t.project.ID != 0 && t.project.ID != hook.Project {
		return lookEvery, nil // another project has the name now: the condition URL tells of it when an event comes
	}
	if m.log.hook != hook.ID {
		m.log = newLog(hook.ID)
	}
	if hook.State != provider.HookCalled {
		m.log.missed, m.log.stale = nil, true // nothing is sent again; after the pause it is read anew
		m.log.through, m.log.marked = 0, 0
		return untilPauseEnds(hook, r.clock.Now()), r.tell(ctx, t, notCalled(t, hook))
	}
	if err := r.read(ctx, &m.log, t, log); fault.Is(err, fault.Ignored) {
		return lookEvery, r.tell(ctx, t, noLog(t))
	} else if err != nil {
		return 0, err
	}
	r.giveUpRefused(ctx, m, t)
	return lookEvery, r.tell(ctx, t, called())
}

// hook is the one of ours that the service calls, or the first of ours.
func (t *target) hook(hooks []provider.Hook) (provider.Hook, bool) {
	ours := t.ours(hooks)
	if i := slices.IndexFunc(ours, func(h provider.Hook) bool { return h.State == provider.HookCalled }); i >= 0 {
		return ours[i], true
	}
	if len(ours) == 0 {
		return provider.Hook{}, false
	}
	return ours[0], true
}

// giveUpRefused gives up what was refused too often.
func (r *Reconciler) giveUpRefused(ctx context.Context, m *memory, t *target) {
	for _, missing := range slices.Clone(m.log.missed) {
		if missing.refused >= maxRefused {
			r.giveUp(ctx, m, t, missing, fmt.Sprintf("it was refused %d times when it was sent again", missing.refused))
		}
	}
}

// untilPauseEnds is when to look again at a webhook that is not called.
func untilPauseEnds(hook provider.Hook, now time.Time) time.Duration {
	if hook.Until.IsZero() {
		return lookEvery
	}
	return min(lookEvery, max(0, hook.Until.Sub(now))+time.Second)
}

// read accounts for what the log has since the last look.
func (r *Reconciler) read(ctx context.Context, l *log, t *target, from provider.HookLog) error {
	view := view{l, t, from}
	failed, err := r.pages(ctx, view, true, l.through)
	if err != nil {
		return err
	}
	oldest := l.saw(failed)
	if oldest == 0 {
		l.accounted(failed, r.clock.Now())
		return nil
	}
	all, err := r.pages(ctx, view, false, oldest-1)
	if err != nil {
		return err
	}
	if len(all) > 0 {
		// What is older than what was read is sent again if it failed: whether it has succeeded since, the receiver knows.
		end := all[len(all)-1].ID
		all = append(all, slices.DeleteFunc(slices.Clone(failed), func(a provider.Attempt) bool { return a.ID >= end })...)
	}
	slices.Reverse(all)
	l.account(all)
	l.accounted(failed, r.clock.Now())
	return nil
}

// view is what a log is read with.
type view struct {
	log    *log
	target *target
	from   provider.HookLog
}

// pages returns the attempts that are newer than an id, newest first.
func (r *Reconciler) pages(ctx context.Context, v view, failed bool, after int64) ([]provider.Attempt, error) {
	var all []provider.Attempt
	for page := 1; page <= maxPages; page++ {
		attempts, more, err := v.from.Attempts(ctx, v.log.hook, failed, page)
		if err != nil {
			return nil, err
		}
		for _, a := range attempts {
			if a.ID <= after {
				return all, nil
			}
			a.Starts = a.Starts && r.counts(v.log, v.target, a)
			if len(all) == 0 || a.ID < all[len(all)-1].ID { // pages move while attempts are made
				all = append(all, a)
			}
		}
		if !more {
			return all, nil
		}
	}
	if failed {
		r.logger.Warnw("more deliveries failed than what is read of the webhook's log: older ones have to be sent again by hand", "repository", v.target.owner.String(), "read", len(all))
	}
	return all, nil
}

// counts tells whether an attempt may be one of a delivery that is missed: what came before the Repository was for nobody here, and what is
// older than the stubs of events are kept might run twice. Where GitLab tells no time only what comes while this process looks counts.
func (r *Reconciler) counts(l *log, t *target, a provider.Attempt) bool {
	if a.At.IsZero() {
		if l.markedAt.IsZero() { // the first look
			l.done[a.GUID] = true
		}
		return !l.done[a.GUID]
	}
	return !a.At.Before(latest(t.repository.CreationTimestamp.Time, r.clock.Now().Add(-r.settings().MaxWait())))
}

// resend has a delivery sent again.
func (r *Reconciler) resend(ctx context.Context, m *memory, t *target, log provider.HookLog, missing *missed) error {
	guid := missing.guid
	status, err := log.Resend(ctx, m.log.hook, missing.id)
	if fault.Is(err, fault.Ignored) {
		r.giveUp(ctx, m, t, *missing, "GitLab does not send it again any more")
		return nil
	}
	if err != nil {
		return err
	}
	m.log.took(guid, status, r.clock.Now())
	r.metrics.resent(ctx, status)
	r.logger.Infow("had a delivery sent again", "repository", t.owner.String(), "delivery", guid, "answer", status)
	return nil
}

// giveUp ends the tries for a delivery, and tells whoever owns the Repository.
func (r *Reconciler) giveUp(ctx context.Context, m *memory, t *target, missing missed, why string) {
	m.log.end(missing.guid)
	r.metrics.gaveUp(ctx)
	r.logger.Warnw("a delivery is given up", "repository", t.owner.String(), "delivery", missing.guid, "why", why)
	r.recorder.Eventf(t.repository, corev1.EventTypeWarning, reasonGivenUp,
		"Delivery %s was not recorded, and is not sent again any more: %s. Its answers are at GitLab, in Settings, Webhooks, under Recent events; when what they name is mended, press Resend Request there, or push again.",
		missing.guid, why)
}

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

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// maxPages bounds one read, 1,000 attempts at GitLab, of what failed and of all.
const maxPages = 50

// view is what a log is read with.
type view struct {
	hook   *webhook
	target *target
	log    provider.HookLog
}

// look reads the state of the webhooks that lead here and their logs, and reports it in the
// condition. It returns how long the next read may wait.
func (s *source) look(ctx context.Context, m *memory, t *target, log provider.HookLog) (time.Duration, error) {
	hooks, err := log.Hooks(ctx)
	if f := fault.Of(err); f != nil && f.Reason == fault.ReasonPermissionMissing {
		m.hooks.unreadable()
		return deniedEvery, s.report(ctx, t, denied(t))
	}
	if err != nil {
		return 0, err
	}
	ours := t.ours(hooks)
	if len(ours) == 0 {
		m.hooks.unreadable()
		return redelivery.ReadEvery, s.report(ctx, t, noHook(t))
	}
	if t.project.ID != 0 && t.project.ID != ours[0].Project {
		m.hooks.unreadable()
		return redelivery.ReadEvery, nil // another project has the name now; the condition URL says so after its first event
	}
	ours = m.hooks.open(ours)
	if slices.ContainsFunc(ours, func(h provider.Hook) bool { return h.State != provider.HookCalled }) {
		m.heads.wanted = true
	}
	if ours[0].State != provider.HookCalled { // GitLab calls none of them
		m.hooks.unreadable()
		return untilPauseEnds(ours[0], s.clock.Now()), s.report(ctx, t, notCalled(t, ours[0]))
	}
	err = s.readAll(ctx, m, ours, view{nil, t, log})
	if fault.Is(err, fault.Ignored) {
		return redelivery.ReadEvery, s.report(ctx, t, noLog(t))
	}
	if err != nil {
		return 0, err
	}
	return s.compare(ctx, m, ours, view{nil, t, log})
}

// readAll reads the logs of the webhooks that GitLab calls.
func (s *source) readAll(ctx context.Context, m *memory, hooks []provider.Hook, v view) error {
	for i, hook := range hooks {
		v.hook = m.hooks.of[i]
		if hook.State != provider.HookCalled {
			v.hook.unreadable()
			continue
		}
		if err := s.readOne(ctx, m, v); err != nil {
			return err
		}
	}
	m.hooks.queue.Prune(m.hooks.missed())
	return nil
}

// readOne finds what is undelivered of one webhook, and gives up what is too old or was refused too
// often.
func (s *source) readOne(ctx context.Context, m *memory, v view) error {
	if err := s.read(ctx, m, v); err != nil {
		return err
	}
	const tooOld = "it is so old that it would run again if it was recorded after all"
	if err := s.giveUp(ctx, v, slices.Clone(v.hook.toReport), tooOld); err != nil {
		return err
	}
	accepted := func(d redelivery.Delivery) bool { return d.Refused < redelivery.MaxRefused }
	refused := slices.DeleteFunc(slices.Clone(v.hook.missed), accepted)
	why := fmt.Sprintf("it was refused %d times or more when it was sent again", redelivery.MaxRefused)
	return s.giveUp(ctx, v, refused, why)
}

// untilPauseEnds returns how long the next read of a webhook waits that GitLab does not call.
func untilPauseEnds(hook provider.Hook, now time.Time) time.Duration {
	if hook.Until.IsZero() {
		return redelivery.ReadEvery
	}
	return min(redelivery.ReadEvery, max(0, hook.Until.Sub(now))+time.Second)
}

// read accounts for what the log has since the last read.
func (s *source) read(ctx context.Context, m *memory, v view) error {
	w := v.hook
	for _, d := range w.missed {
		if s.old(d.First) {
			w.expire(d.GUID, d.FirstID, true)
		}
	}
	failed, err := s.pages(ctx, v, true, w.through)
	if err != nil {
		return err
	}
	oldest := w.unaccounted(failed)
	if oldest == 0 {
		if err := s.readNewest(ctx, m, v); err != nil {
			return err
		}
		w.accounted(failed, s.clock.Now())
		return nil
	}
	all, err := s.pages(ctx, v, false, oldest-1)
	if err != nil {
		return err
	}
	s.recover(m, w, all)
	end := oldest
	if len(all) > 0 {
		// A failed attempt that is older than what was read is resent. The receiver knows whether
		// the delivery has succeeded since.
		end = all[len(all)-1].ID
		all = append(all, slices.DeleteFunc(slices.Clone(failed), func(a provider.Attempt) bool { return a.ID >= end })...)
	}
	w.decide(all, end)
	slices.Reverse(all)
	w.account(all)
	w.accounted(failed, s.clock.Now())
	return nil
}

// readNewest reads the first page while resends pause after a failure: a delivery that succeeded
// ends the pause.
func (s *source) readNewest(ctx context.Context, m *memory, v view) error {
	if v.hook.failures == 0 || len(v.hook.missed) == 0 {
		return nil
	}
	newest, _, err := v.log.Attempts(ctx, v.hook.id, false, 1)
	if err != nil {
		return err
	}
	s.recover(m, v.hook, newest)
	return nil
}

func (s *source) recover(m *memory, w *webhook, newest []provider.Attempt) {
	if w.recovered(newest) {
		m.hooks.queue.Recovered = s.clock.Now()
	}
}

// pages returns the attempts that are newer than an id, the newest ids first. The log is in the
// order of times, which differs for attempts that are made together.
func (s *source) pages(ctx context.Context, v view, failed bool, after int64) ([]provider.Attempt, error) {
	byID := map[int64]provider.Attempt{} // pages move while attempts are made
	end := shareOf(ctx)
	for page, older := 1, false; !older; page++ {
		if page > maxPages || page > 1 && time.Now().After(end) {
			if failed {
				const text = "more deliveries failed than one read of the webhook's log takes: resend older ones by hand"
				s.logger.Warnw(text, "repository", v.target.owner.String(), "read", len(byID))
			}
			break
		}
		attempts, more, err := v.log.Attempts(ctx, v.hook.id, failed, page)
		if err != nil {
			return nil, err
		}
		older = !more
		for _, a := range attempts {
			if a.ID <= after {
				older = true
				continue
			}
			byID[a.ID] = s.counted(v, a)
		}
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b provider.Attempt) int { return cmp.Compare(b.ID, a.ID) }), nil
}

// counted clears Starts of an attempt that does not count, and records one that is too old.
func (s *source) counted(v view, a provider.Attempt) provider.Attempt {
	if a.Starts && s.old(a.At) {
		v.hook.expire(a.GUID, a.ID, failed(a) && !precedes(a, v.target))
	}
	a.Starts = a.Starts && s.counts(v, a)
	return a
}

// shareOf returns until when one list is read: for a quarter of the time that is left. An
// incomplete read is worth more than one that is ended, because the next would be ended as well.
// GitLab may take seconds for a page of whole payloads, and calls for each of large ones.
func shareOf(ctx context.Context) time.Time {
	deadline, limited := ctx.Deadline()
	if !limited {
		deadline = time.Now().Add(stepTimeout)
	}
	return time.Now().Add(time.Until(deadline) / 4)
}

// counts reports whether an attempt may be of an undelivered webhook. One from before the
// Repository was for nothing here, and one that is too old might run twice. Where GitLab reports no
// times, only attempts after the first read count.
func (s *source) counts(v view, a provider.Attempt) bool {
	if a.At.IsZero() {
		if v.hook.markedAt.IsZero() { // the first read
			v.hook.untimed = max(v.hook.untimed, a.ID)
		}
		return a.ID > v.hook.untimed
	}
	return !s.old(a.At) && !precedes(a, v.target)
}

// precedes reports whether an attempt was made before the Repository.
func precedes(a provider.Attempt, t *target) bool {
	return a.At.Before(t.repository.CreationTimestamp.Time)
}

// failed reports whether no receiver took an attempt. A 4xx is the response to a delivery that it
// refuses for good.
func failed(a provider.Attempt) bool {
	return a.Status == 0 || a.Status >= http.StatusInternalServerError
}

// old reports whether the stub of an event may be gone whose first attempt was made then.
func (s *source) old(at time.Time) bool {
	return !at.IsZero() && at.Before(s.clock.Now().Add(-s.settings().MaxWait()))
}

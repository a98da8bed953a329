// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// maxHooks is how many of a project's webhooks that lead here are read. A project has one, or a few
// for different events. Each costs a call at each read.
const maxHooks = 5

// webhooks are the webhooks of one project that call this installation's receiver.
type webhooks struct {
	of    []*webhook
	queue redelivery.Queue
	// sent are the times of the resends in the last minute: GitLab counts those of all webhooks of
	// a project together.
	sent []time.Time
}

// open sets the webhooks whose logs are read from now on, and returns them: those that GitLab calls
// come first. What is known of others is dropped.
func (w *webhooks) open(ours []provider.Hook) []provider.Hook {
	ours = slices.Clone(ours)
	slices.SortStableFunc(ours, func(a, b provider.Hook) int { return rank(a) - rank(b) })
	ours = ours[:min(len(ours), maxHooks)]
	known := w.of
	w.of = nil
	for _, hook := range ours {
		if i := slices.IndexFunc(known, func(one *webhook) bool { return one.id == hook.ID }); i >= 0 {
			w.of = append(w.of, known[i])
			continue
		}
		w.of = append(w.of, newWebhook(hook.ID))
	}
	return ours
}

func rank(hook provider.Hook) int {
	if hook.State == provider.HookCalled {
		return 0
	}
	return 1
}

// signal takes the signal of a receiver.
func (w *webhooks) signal(at time.Time) {
	w.queue.Recovered = at
	for _, one := range w.of {
		one.signal()
	}
}

// unreadable drops what is undelivered of all of them.
func (w *webhooks) unreadable() {
	for _, one := range w.of {
		one.unreadable()
	}
}

// missed returns what is undelivered of all of them.
func (w *webhooks) missed() (all []redelivery.Delivery) {
	for _, one := range w.of {
		all = append(all, one.missed...)
	}
	return all
}

// next returns the delivery to resend next, its webhook, and when; nil if there is none.
func (w *webhooks) next(now time.Time) (in *webhook, next *redelivery.Delivery, at time.Time) {
	var limit time.Time
	if n := len(w.sent) - provider.ResendsAtOnce; n >= 0 {
		limit = w.sent[n].Add(provider.ResendsEvery + time.Second)
	}
	next, at = w.queue.Next(w.missed(), now, func(d *redelivery.Delivery) (time.Time, bool) {
		return redelivery.Latest(limit, w.byID(d.Repository).resumeAt), true
	})
	if next == nil {
		return nil, nil, time.Time{}
	}
	return w.byID(next.Repository), next, at
}

func (w *webhooks) byID(id int64) *webhook {
	return w.of[slices.IndexFunc(w.of, func(one *webhook) bool { return one.id == id })]
}

// resent takes the response to a resend, 0 for none.
func (w *webhooks) resent(in *webhook, d *redelivery.Delivery, status int, now time.Time) {
	w.sent = append(w.sent, now)
	w.sent = w.sent[max(0, len(w.sent)-provider.ResendsAtOnce):]
	w.queue.Requested(d, now)
	in.resent(d.GUID, status, now)
}

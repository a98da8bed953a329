// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// maxHooks is how many webhooks of a project are read that lead here: one, or some for different
// events. Each costs a call for each look.
const maxHooks = 5

// logs are those of the webhooks of one project that lead here.
type logs struct {
	of []*log
	// sent are the times of what was sent again in the last minute: GitLab counts those of all
	// webhooks of a project together.
	sent []time.Time
}

// open returns the webhooks whose logs these are from now on, at least one: those that the service
// calls come first. What is known of others is forgotten.
func (l *logs) open(ours []provider.Hook) []provider.Hook {
	ours = slices.Clone(ours)
	slices.SortStableFunc(ours, func(a, b provider.Hook) int { return rank(a) - rank(b) })
	ours = ours[:min(len(ours), maxHooks)]
	known := l.of
	l.of = nil
	for _, hook := range ours {
		if i := slices.IndexFunc(known, func(one *log) bool { return one.hook == hook.ID }); i >= 0 {
			l.of = append(l.of, known[i])
			continue
		}
		one := newLog(hook.ID)
		l.of = append(l.of, &one)
	}
	return ours
}

func rank(hook provider.Hook) int {
	if hook.State == provider.HookCalled {
		return 0
	}
	return 1
}

// heard notes that a receiver says that it is there.
func (l *logs) heard(at time.Time) {
	for _, one := range l.of {
		one.heard(at)
	}
}

// unseen forgets what is missed: nothing can be seen of the webhooks.
func (l *logs) unseen() {
	for _, one := range l.of {
		one.unseen()
	}
}

// missing counts what is missed.
func (l *logs) missing() (n int) {
	for _, one := range l.of {
		n += len(one.missed)
	}
	return n
}

// next returns the delivery that is to be sent again next, in which log it is, and when; nil and
// zero when there is none. Webhooks take turns.
func (l *logs) next(now time.Time) (in *log, next *missed, at time.Time) {
	for _, one := range l.of {
		m, due := one.next(now)
		switch {
		case m == nil:
			continue
		case next == nil, due.Before(at) && at.After(now):
		case due.After(now), !one.last.Before(in.last):
			continue
		}
		in, next, at = one, m, due
	}
	if next != nil && len(l.sent) >= provider.ResendsAtOnce {
		at = latest(at, l.sent[len(l.sent)-provider.ResendsAtOnce].Add(provider.ResendsEvery+time.Second))
	}
	return in, next, at
}

// took notes that a delivery was sent again and what it was answered with, 0 for no answer.
func (l *logs) took(in *log, guid string, status int, now time.Time) {
	l.sent = append(l.sent, now)
	if extra := len(l.sent) - provider.ResendsAtOnce; extra > 0 {
		l.sent = l.sent[extra:]
	}
	in.took(guid, status, now)
}

// SPDX-License-Identifier: Apache-2.0

package supersede

import (
	"cmp"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// order says which of two events is newer.
type order int

const (
	unknown     order = iota // while the Git service may not have received all pushes
	unconfirmed              // Git says that the event is newer, and may not have received all pushes
	older                    // the other event, or one that is newer than both, replaces it
	newer                    // it replaces the other one
	unrelated                // Git says of neither that it is newer
)

// order compares the event with another one of its series. The event whose commit is the current
// head of the pull request or branch is newer. Of two events of one commit, the one that happened
// later is newer. Without a head (a tag, a deleted branch) the later push is newer. It is also
// newer if the head is a third commit, which may have no run of the pipeline; the head's own event
// stops the runs of both when it has one. With older, order returns the commit that replaces the
// event's.
func (s *series) order(other *v1alpha1.GitEvent, head string, now time.Time) (result order, newest string) {
	its := shaOf(other)
	switch {
	case its == s.sha && later(s.self, other) > 0:
		return newer, ""
	case its == s.sha:
		return older, its
	case head == "":
		return s.byPushes(its)
	case head == s.sha && s.certain(other, head, now):
		return newer, ""
	case head == s.sha:
		return unconfirmed, ""
	case !s.certain(s.self, head, now):
		return unknown, ""
	case head == its:
		return older, its
	case !s.certain(other, head, now):
		return unknown, ""
	}
	return s.byPushes(its)
}

// byPushes orders two events by the clock of the Git service, and where that does not decide by the
// recorded pushes.
func (s *series) byPushes(its string) (result order, newest string) {
	switch {
	case s.pushes.seenLater(its, s.sha), s.replaced(s.sha, its):
		return older, its
	case s.pushes.seenLater(s.sha, its), s.replaced(its, s.sha):
		return newer, ""
	}
	return unrelated, ""
}

// certain reports whether the head that Git names is certainly newer than an event's commit. Either
// the commit has been known for longer than any replica lags, or recorded pushes have replaced it
// with the head.
func (s *series) certain(event *v1alpha1.GitEvent, head string, now time.Time) bool {
	return now.Sub(attempt.LearnedAt(event)) >= Lag || s.replaced(shaOf(event), head)
}

// later orders events of one commit by the time at which they happened by the Git service's clock,
// events of one second by the number of their comment, and the rest in the order in which they were
// recorded. Every process gets the same order, because only recorded data counts.
func later(a, b *v1alpha1.GitEvent) int {
	return cmp.Or(a.Happened().Compare(b.Happened()), cmp.Compare(comment(a), comment(b)),
		a.RecordedAt().Compare(b.RecordedAt()), cmp.Compare(a.Name, b.Name))
}

func comment(event *v1alpha1.GitEvent) int64 {
	if event.Spec.Comment == nil {
		return 0
	}
	return event.Spec.Comment.ID
}

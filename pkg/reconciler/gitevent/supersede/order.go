// SPDX-License-Identifier: Apache-2.0

package supersede

import (
	"cmp"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// order is how the event stands to another one.
type order int

const (
	unknown     order = iota // as long as the Git service may not have heard of all pushes
	unconfirmed              // Git says that the event is newer, and may not have heard of all pushes
	older                    // the other event, or one that is newer than both, takes its place
	newer                    // it takes the other one's place
	unrelated                // Git says of neither that it is newer
)

// order compares the event with another one of its line, by what Git has now: the one whose commit
// is the head of the pull request or branch is newer. Of two of one commit it is the one that
// happened later. Where there is no head (a tag, a deleted branch) it is the one that was pushed
// later. So it is if the head is the commit of neither, which may have no run of the pipeline: it
// ends the runs of both when it has one. With older it returns the commit that takes the event's
// place.
func (l *series) order(other *v1alpha1.GitEvent, head string, now time.Time) (result order, newest string) {
	its := shaOf(other)
	switch {
	case its == l.sha && later(l.self, other) > 0:
		return newer, ""
	case its == l.sha:
		return older, its
	case head == "":
		return l.byPushes(its)
	case head == l.sha && l.certain(other, head, now):
		return newer, ""
	case head == l.sha:
		return unconfirmed, ""
	case !l.certain(l.self, head, now):
		return unknown, ""
	case head == its:
		return older, its
	case !l.certain(other, head, now):
		return unknown, ""
	}
	return l.byPushes(its)
}

// byPushes is order by the clock of the Git service, and where that does not tell by the pushes
// that are on record.
func (l *series) byPushes(its string) (result order, newest string) {
	switch {
	case l.pushes.seenLater(its, l.sha), l.replaced(l.sha, its):
		return older, its
	case l.pushes.seenLater(l.sha, its), l.replaced(its, l.sha):
		return newer, ""
	}
	return unrelated, ""
}

// sure reports whether it may be believed that the head, as Git says it, is newer than an event's
// commit: that has been known for longer than any replica lags, or pushes on record have replaced
// it with the head.
func (l *series) certain(event *v1alpha1.GitEvent, head string, now time.Time) bool {
	return now.Sub(attempt.LearnedAt(event)) >= Lag || l.replaced(shaOf(event), head)
}

// later orders events of one commit by when they happened by the Git service's clock, those of one
// second by the number of their comment, and the rest in the order in which they were recorded. It
// is the same order whoever asks: what was recorded counts.
func later(a, b *v1alpha1.GitEvent) int {
	return cmp.Or(
		a.Happened().Compare(b.Happened()),
		cmp.Compare(comment(a), comment(b)),
		a.RecordedAt().Compare(b.RecordedAt()),
		cmp.Compare(a.Name, b.Name),
	)
}

func comment(event *v1alpha1.GitEvent) int64 {
	if event.Spec.Comment == nil {
		return 0
	}
	return event.Spec.Comment.ID
}

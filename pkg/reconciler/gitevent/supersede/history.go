// SPDX-License-Identifier: Apache-2.0

package supersede

import (
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// line is the open events of one pull request, branch or tag.
type series struct {
	// self is the event whose turn it is, and sha its commit.
	self *v1alpha1.GitEvent
	sha  string
	// name is what the line is called; "" if it is not known of which the event is.
	name   string
	others []*v1alpha1.GitEvent
	pushes commitHistory
}

func seriesOf(event *v1alpha1.GitEvent, open []*v1alpha1.GitEvent) *series {
	self := *event
	l := &series{self: &self, sha: shaOf(event), name: nameOf(event)}
	if l.name == "" || len(event.Status.Runs) == 0 {
		return l
	}
	for _, other := range open {
		if other.Name == self.Name { // the plan may have learnt more than was recorded; the others see what was
			self.Spec.HappenedAt = other.Spec.HappenedAt
			continue
		}
		if other.Settled() || !l.has(other) {
			continue
		}
		l.pushes.add(other)
		if shaOf(other) != "" { // that of a comment is known once it is planned
			l.others = append(l.others, other)
		}
	}
	l.pushes.add(&self)
	slices.SortFunc(l.others, later)
	return l
}

// nameOf is the same for all events of one pull request, or of one branch or tag, of a Repository.
// An event that closes a pull request starts nothing and has none.
func nameOf(event *v1alpha1.GitEvent) string {
	switch ref := event.GitRef(); {
	case event.Spec.Closes():
		return ""
	case event.Spec.PullRequest != nil:
		return event.Spec.Subject()
	case ref != "":
		return event.Spec.Repository.Origin() + " " + ref
	case event.Spec.Rerun != nil && event.Status.Plan != nil: // of a pull request, which its label tells
		return event.Labels[plumbline.SubjectLabel]
	}
	return ""
}

// has reports whether an event is of the line. A re-run of a pull request that the version before
// has recorded is called by the other one of the pull request's Subjects.
func (l *series) has(other *v1alpha1.GitEvent) bool {
	name := nameOf(other)
	if name == l.name {
		return true
	}
	rerun, of := other, l.self
	if l.self.Spec.Rerun != nil {
		rerun, of, name = of, rerun, l.name
	}
	pull := of.Spec.PullRequest != nil && !of.Spec.Closes()
	return name != "" && pull && rerun.Spec.Rerun != nil && slices.Contains(strings.Split(of.Spec.Subjects(), ","), name)
}

func shaOf(event *v1alpha1.GitEvent) string { return history.Record{Event: event}.SHA() }

// spec is the event's for a question to Git: a re-run does not tell of which pull request it is,
// and the others do.
func (l *series) spec() *v1alpha1.GitEventSpec {
	spec := l.self.Spec.DeepCopy()
	if spec.BaseRef = l.self.GitRef(); spec.BaseRef != "" || spec.PullRequest != nil {
		return spec
	}
	for _, other := range l.others {
		if other.Spec.PullRequest != nil {
			spec.PullRequest = other.Spec.PullRequest
			return spec
		}
	}
	return spec // of no branch: there is no tip
}

// history is what the open events of a line tell of its commits.
type commitHistory struct {
	// next are, of each commit, those that pushes have replaced it with, and last those that it has
	// replaced.
	next, last map[string][]string
	// seen is when each commit was last the newest one by the Git service's clock. A commit of
	// which no event says when has none.
	seen map[string]span
	// reached keeps what was walked already.
	reached map[walk]map[string]bool
}

// span is a moment that is not known better: not before from, and not after to.
type span struct{ from, to time.Time }

// walk starts at a commit, and goes to those after it or to those before it.
type walk struct {
	sha  string
	back bool
}

func (h *commitHistory) add(event *v1alpha1.GitEvent) {
	if h.seen == nil {
		*h = commitHistory{map[string][]string{}, map[string][]string{}, map[string]span{}, map[walk]map[string]bool{}}
	}
	spec, sha := &event.Spec, shaOf(event)
	if before := spec.Before; strings.Trim(before, "0") != "" {
		h.next[before], h.last[spec.SHA] = append(h.next[before], spec.SHA), append(h.last[spec.SHA], before)
	}
	if spec.HappenedAt == nil || spec.Rerun != nil || spec.Comment != nil && spec.PullRequest == nil {
		return // it does not say what is newest
	}
	when := span{event.Happened(), event.Happened()}
	if spec.Comment != nil { // its commit is what a replica had when it was planned
		when = span{event.Happened().Add(-Lag), attempt.LearnedAt(event).Add(Lag)}
	}
	if before := h.seen[sha]; before.from.After(when.from) {
		when.from = before.from
	}
	if before := h.seen[sha]; before.to.After(when.to) {
		when.to = before.to
	}
	h.seen[sha] = when
}

// from are the commits that pushes lead to from one, or that lead to it. Each push is walked once,
// however often it is asked.
func (h *commitHistory) from(start walk) map[string]bool {
	if reached := h.reached[start]; reached != nil {
		return reached
	}
	edges := h.next
	if start.back {
		edges = h.last
	}
	reached, left := map[string]bool{}, []string{start.sha}
	for len(left) > 0 {
		sha := left[0]
		left = left[1:]
		for _, to := range edges[sha] {
			if !reached[to] {
				reached[to], left = true, append(left, to)
			}
		}
	}
	h.reached[start] = reached
	return reached
}

// seenLater reports whether one commit is known to have been the newest after another one was.
func (h *commitHistory) seenLater(one, another string) bool {
	a, b := h.seen[one].from, h.seen[another].to
	return !a.IsZero() && !b.IsZero() && a.After(b)
}

// doubtful reports whether one commit may have been the newest after another one was, by the clock.
// One of which it is known to the second was pushed then.
func (h *commitHistory) doubtful(one, another string) bool {
	a, b := h.seen[one], h.seen[another]
	return h.seenLater(one, another) || (a.from != a.to || b.from != b.to) && !h.seenLater(another, one)
}

// replaced reports whether pushes have replaced one commit with another: those on record lead there
// and not back, and the clock does not tell of one that is not on record. That of an event without
// runs, which is settled at once, may be such.
func (l *series) replaced(sha, by string) bool {
	of, with := sha, by
	if sha != l.sha { // one of the two is the event's own commit or the head: walks from there serve for all other events
		of, with = by, sha
	}
	there, back := l.pushes.from(walk{of, sha != l.sha})[with], l.pushes.from(walk{of, sha == l.sha})[with]
	return there && !back && !l.pushes.doubtful(sha, by)
}

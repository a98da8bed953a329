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

// series is the unsettled events of one pull request, branch or tag.
type series struct {
	// self is the event that is reconciled, and sha its commit.
	self *v1alpha1.GitEvent
	sha  string
	// name identifies the series; "" if it is not known to which one the event belongs.
	name   string
	others []*v1alpha1.GitEvent
	pushes commitHistory
}

func seriesOf(event *v1alpha1.GitEvent, open []*v1alpha1.GitEvent) *series {
	self := *event
	s := &series{self: &self, sha: shaOf(event), name: nameOf(event)}
	if s.name == "" || len(event.Status.Runs) == 0 {
		return s
	}
	for _, other := range open {
		if other.Name == self.Name { // the plan may know more than was recorded; the others see only that
			self.Spec.HappenedAt = other.Spec.HappenedAt
			continue
		}
		if other.Settled() || !s.has(other) {
			continue
		}
		s.pushes.add(other)
		if shaOf(other) != "" { // the commit of a comment is known once it is planned
			s.others = append(s.others, other)
		}
	}
	s.pushes.add(&self)
	slices.SortFunc(s.others, later)
	return s
}

// nameOf returns the same for all events of one pull request, branch or tag of a Repository. An
// event that closes a pull request starts nothing and has no name.
func nameOf(event *v1alpha1.GitEvent) string {
	switch ref := event.GitRef(); {
	case event.Spec.Closes():
		return ""
	case event.Spec.PullRequest != nil:
		return event.Spec.Subject()
	case ref != "":
		return event.Spec.Repository.Origin() + " " + ref
	case event.Spec.Rerun != nil && event.Status.Plan != nil: // of a pull request, which its label names
		return event.Labels[plumbline.SubjectLabel]
	}
	return ""
}

// has reports whether an event belongs to the series. A re-run of a pull request that an older
// version has recorded is named by the other one of the pull request's Subjects.
func (s *series) has(other *v1alpha1.GitEvent) bool {
	name := nameOf(other)
	if name == s.name {
		return true
	}
	rerun, of := other, s.self
	if s.self.Spec.Rerun != nil {
		rerun, of, name = of, rerun, s.name
	}
	pull := of.Spec.PullRequest != nil && !of.Spec.Closes()
	return name != "" && pull && rerun.Spec.Rerun != nil && slices.Contains(strings.Split(of.Spec.Subjects(), ","), name)
}

func shaOf(event *v1alpha1.GitEvent) string { return history.Record{Event: event}.SHA() }

// spec returns the event's spec for a question to Git. A re-run does not name its pull request; the
// other events do.
func (s *series) spec() *v1alpha1.GitEventSpec {
	spec := s.self.Spec.DeepCopy()
	if spec.BaseRef = s.self.GitRef(); spec.BaseRef != "" || spec.PullRequest != nil {
		return spec
	}
	for _, other := range s.others {
		if other.Spec.PullRequest != nil {
			spec.PullRequest = other.Spec.PullRequest
			return spec
		}
	}
	return spec // of no branch: there is no tip
}

// commitHistory is what the unsettled events of a series say about its commits.
type commitHistory struct {
	// next has, for each commit, the commits that pushes have replaced it with, and last the
	// commits that it has replaced.
	next, last map[string][]string
	// seen is when each commit was last the newest one by the Git service's clock. A commit without
	// a known time has none.
	seen map[string]span
	// reached caches the walks.
	reached map[walk]map[string]bool
}

// span is a time that is not known exactly: not before from, and not after to.
type span struct{ from, to time.Time }

// walk starts at a commit, and goes to later or to earlier commits.
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
		return // it does not say which is newest
	}
	when := span{event.Happened(), event.Happened()}
	if spec.Comment != nil { // its commit is the one that a replica had when it was planned
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

// from returns the commits that pushes lead to from one, or that lead to it. Each push is walked
// once, however often it is asked for.
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

// doubtful reports whether, by the clock, one commit may have been the newest after another one
// was. A commit whose time is known to the second was pushed then.
func (h *commitHistory) doubtful(one, another string) bool {
	a, b := h.seen[one], h.seen[another]
	return h.seenLater(one, another) || (a.from != a.to || b.from != b.to) && !h.seenLater(another, one)
}

// replaced reports whether pushes have replaced one commit with another: the recorded pushes lead
// there and not back, and by the clock no push is missing in the record. The push of an event
// without runs, which settles at once, may be missing.
func (s *series) replaced(sha, by string) bool {
	of, with := sha, by
	// One of the two is the event's own commit or the head: its walk is reused for all other
	// events.
	if sha != s.sha {
		of, with = by, sha
	}
	there, back := s.pushes.from(walk{of, sha != s.sha})[with], s.pushes.from(walk{of, sha == s.sha})[with]
	return there && !back && !s.pushes.doubtful(sha, by)
}

// SPDX-License-Identifier: Apache-2.0

package superseding

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/attempt"
	"github.com/plumbline-ci/plumbline/pkg/records"
)

// line is the open events of one pull request, branch or tag.
type line struct {
	// self is the event whose turn it is, and sha its commit.
	self *v1alpha1.GitEvent
	sha  string
	// name is what the line is called; "" if it is not known of which the event is.
	name   string
	others []*v1alpha1.GitEvent
	// pushed are, of each commit, those that pushes have replaced it with.
	pushed map[string][]string
}

// line is that of an event, as the cache knows it.
func (s *Step) line(a *attempt.Attempt) *line {
	ref := a.Event.Spec.Repository
	return lineOf(a.Event, s.Of(ref.Namespace, ref.Name))
}

func lineOf(event *v1alpha1.GitEvent, open []*v1alpha1.GitEvent) *line {
	self := *event
	l := &line{self: &self, sha: shaOf(event), name: nameOf(event), pushed: map[string][]string{}}
	if l.name == "" || len(event.Status.Runs) == 0 {
		return l
	}
	l.push(event)
	for _, other := range open {
		if other.Name == self.Name { // the plan may have learnt more than was recorded; the others see what was
			self.Spec.HappenedAt = other.Spec.HappenedAt
			continue
		}
		if other.Settled() || nameOf(other) != l.name {
			continue
		}
		l.push(other)
		if shaOf(other) != "" { // that of a comment is known once it is planned
			l.others = append(l.others, other)
		}
	}
	slices.SortFunc(l.others, later)
	return l
}

func (l *line) push(event *v1alpha1.GitEvent) {
	if before := event.Spec.Before; strings.Trim(before, "0") != "" {
		l.pushed[before] = append(l.pushed[before], event.Spec.SHA)
	}
}

// nameOf is the same for all events of one pull request, or of one branch or tag, of a Repository. An event that closes a pull request
// starts nothing and has none.
func nameOf(event *v1alpha1.GitEvent) string {
	switch ref := event.GitRef(); {
	case event.Spec.Closes():
		return ""
	case event.Spec.PullRequest != nil:
		return event.Spec.Subject()
	case ref != "":
		return string(event.Spec.Repository.UID) + " " + ref
	case event.Spec.Rerun != nil && event.Status.Plan != nil: // of a pull request, which its label tells
		return event.Labels[plumbline.SubjectLabel]
	}
	return ""
}

func shaOf(event *v1alpha1.GitEvent) string { return records.Record{Event: event}.SHA() }

// spec is the event's for a question to Git: a re-run does not tell of which pull request it is, and the others do.
func (l *line) spec() *v1alpha1.GitEventSpec {
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

// order is how the event stands to another one.
type order int

const (
	unknown   order = iota // as long as the Git service may not have heard of all pushes
	older                  // the other event, or one that is newer than both, takes its place
	newer                  // it takes the other one's place
	unrelated              // Git says of neither that it is newer
)

// order compares the event with another one of its line, by what Git has now: the one whose commit is the head of the pull request or
// branch is newer. Of two of one commit it is the one that happened later. Where there is no head (a tag, a deleted branch), or where it is
// neither of theirs, it is the one whose push has replaced the other's commit. With older it returns the commit that takes the event's place.
func (l *line) order(other *v1alpha1.GitEvent, head string, now time.Time) (result order, newest string) {
	its := shaOf(other)
	age, itsAge := now.Sub(l.self.Spec.ReceivedAt.Time), now.Sub(other.Spec.ReceivedAt.Time)
	switch {
	case its == l.sha && later(l.self, other) > 0:
		return newer, ""
	case its == l.sha:
		return older, its
	case head == "":
		return l.pushes(its)
	case head == l.sha && l.sure(its, l.sha, itsAge):
		return newer, ""
	case head == its && l.sure(l.sha, its, age):
		return older, its
	case head != l.sha && head != its && l.sure(l.sha, head, age):
		return l.neither(its, head, itsAge)
	}
	return unknown, ""
}

// neither is order where the head is the commit of neither event, which is sure for this one. The head may have no run of the pipeline: it
// ends the runs of both when it has one, and until then the pushes decide.
func (l *line) neither(its, head string, itsAge time.Duration) (result order, newest string) {
	if !l.sure(its, head, itsAge) {
		return unknown, ""
	}
	return l.pushes(its)
}

// pushes is order where there is no head: by the pushes that are on record.
func (l *line) pushes(its string) (result order, newest string) {
	switch {
	case l.replaced(l.sha, its):
		return older, its
	case l.replaced(its, l.sha):
		return newer, ""
	}
	return unrelated, ""
}

// sure tells whether it may be believed that one commit is newer than another, as Git says: the pushes that are on record agree, or the
// event of the first is older than any replica lags.
func (l *line) sure(sha, newest string, age time.Duration) bool {
	return age >= Lag || l.replaced(sha, newest)
}

// replaced tells whether pushes have replaced one commit with another, and none the other way.
func (l *line) replaced(sha, by string) bool { return l.leads(sha, by) && !l.leads(by, sha) }

// leads tells whether pushes that are on record lead from one commit to another.
func (l *line) leads(from, to string) bool {
	seen, next := map[string]bool{from: true}, []string{from}
	for len(next) > 0 {
		sha := next[0]
		next = next[1:]
		for _, after := range l.pushed[sha] {
			if after == to {
				return true
			}
			if !seen[after] {
				seen[after] = true
				next = append(next, after)
			}
		}
	}
	return false
}

// later orders events of one commit by when they happened by the Git service's clock, those of one second by the number of their comment,
// and the rest in the order in which they were received. It is the same order whoever asks: what was recorded counts.
func later(a, b *v1alpha1.GitEvent) int {
	return cmp.Or(a.Spec.Happened().Compare(b.Spec.Happened()), cmp.Compare(comment(a), comment(b)), a.Spec.ReceivedAt.Compare(b.Spec.ReceivedAt.Time), cmp.Compare(a.Name, b.Name))
}

func comment(event *v1alpha1.GitEvent) int64 {
	if event.Spec.Comment == nil {
		return 0
	}
	return event.Spec.Comment.ID
}

// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// Cancellation cancels runs, because the pull request was closed or a user requested it. It is in
// the plan of the event that cancels, and in an annotation of each event whose runs it cancels
// (plumbline.CancelAnnotation). See docs/adr/0035.
type Cancellation struct {
	// The login of the user who caused it; empty if the Git service does not say.
	// +optional
	By string `json:"by,omitempty"`
	// The pipelines whose runs are cancelled; empty for all.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	Names []string `json:"names,omitempty"`
	// The full branch or tag whose runs are cancelled, if the user requested it on a commit:
	// several refs may be at the same commit. It is empty when the runs of a pull request are
	// cancelled.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Ref string `json:"ref,omitempty"`
	// A sentence for people, without a full stop: "octocat closed the pull request".
	Why string `json:"why"`
	// When it happened by the Git service's clock, in whole seconds. Events that happened
	// later are not cancelled.
	At metav1.Time `json:"at"`
}

const (
	// MaxCancellations is how many cancellations an event accepts. Each is an annotation, and all
	// annotations together must fit into 256 KiB.
	MaxCancellations = 50
	// aheadLimit is how much the clock of a Git service may be ahead of the receiver's. A later
	// time is replaced by this limit, because an unsigned body may contain any time.
	aheadLimit = 5 * time.Minute
)

// Covers reports whether the cancellation includes a pipeline. The dash at the end of a
// generateName may be left out. The name "" stands for everything that the event starts, which only
// a cancellation of all pipelines includes.
func (c *Cancellation) Covers(pipeline string) bool {
	if len(c.Names) == 0 {
		return true
	}
	return pipeline != "" &&
		(slices.Contains(c.Names, pipeline) || slices.Contains(c.Names, strings.TrimSuffix(pipeline, "-")))
}

// Cancelled returns the cancellation of a pipeline's run, nil if it is not cancelled. If there are
// several, it returns the one that happened first. The name "" is as for Covers. While the ref of
// an event is not known, a cancellation of one ref does not apply.
func (e *GitEvent) Cancelled(pipeline string) *Cancellation {
	var first *Cancellation
	for _, name := range e.cancellations() {
		c := &Cancellation{}
		if err := json.Unmarshal([]byte(e.Annotations[name]), c); err != nil {
			continue // not ours, or written by a newer version
		}
		if !c.Covers(pipeline) || c.Ref != "" && c.Ref != e.GitRef() {
			continue
		}
		if first == nil || c.At.Before(&first.At) {
			first = c
		}
	}
	return first
}

// OwnRef returns the full branch or tag that has the commit of a push or merge group.
func (s *GitEventSpec) OwnRef() string {
	if s.Trigger == TriggerMergeGroup {
		return "refs/heads/" + s.HeadRef
	}
	return s.BaseRef
}

// GitRef returns the event's full branch or tag ("refs/heads/main"). It is empty for events of pull
// requests, and while it is not known: for a comment on a commit and for a re-run, only the plan
// knows it.
func (e *GitEvent) GitRef() string {
	switch {
	case e.Spec.PullRequest != nil:
		return ""
	case e.Spec.Comment == nil && e.Spec.Rerun == nil:
		return e.Spec.OwnRef()
	case e.Status.Plan != nil:
		return e.Status.Plan.Ref
	}
	return ""
}

// cancellations returns the names of the annotations with a cancellation, sorted.
func (e *GitEvent) cancellations() []string {
	var names []string
	for name := range e.Annotations {
		if strings.HasPrefix(name, plumbline.CancelAnnotation) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}

// Knows reports whether the event has every cancellation that another copy of it has.
func (e *GitEvent) Knows(other *GitEvent) bool {
	for name := range other.Annotations {
		if _, known := e.Annotations[name]; !known && strings.HasPrefix(name, plumbline.CancelAnnotation) {
			return false
		}
	}
	return true
}

// Needs reports whether a cancellation changes something for an unsettled event: the event has or
// may have such runs, and no other cancellation includes them.
func (e *GitEvent) Needs(c *Cancellation) bool {
	if len(c.Names) == 0 {
		return e.Cancelled("") == nil
	}
	if e.Status.Plan.Decided() &&
		!slices.ContainsFunc(e.Status.Runs, func(run Run) bool { return c.Covers(run.Pipeline) }) {
		return false
	}
	return len(e.cancellations()) < MaxCancellations &&
		slices.ContainsFunc(c.Names, func(name string) bool { return e.Cancelled(name) == nil })
}

// CancelsAs returns the annotation that records the cancellation on another event. event is the
// name of the event that cancels.
func (c *Cancellation) CancelsAs(event string) (name, value string, err error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", "", fmt.Errorf("encoding the cancellation of %s: %w", event, err)
	}
	return plumbline.CancelAnnotation + event, string(data), nil
}

// Closes reports whether the event closed or merged its pull request, or ended its merge group.
func (s *GitEventSpec) Closes() bool {
	if s.Trigger == TriggerMergeGroup {
		return s.Action == ActionDestroyed
	}
	return s.PullRequest != nil && s.Comment == nil && slices.Contains([]string{"closed", "close", "merge"}, s.Action)
}

// ActionDestroyed is the action of a merge group that was merged or left the queue.
const ActionDestroyed = "destroyed"

// ClosesOf reports whether the event closed the pull request or merge group of another one.
func (s *GitEventSpec) ClosesOf(other *GitEventSpec) bool {
	if !s.Closes() || s.Repository.Origin() != other.Repository.Origin() {
		return false
	}
	if s.PullRequest != nil {
		return other.PullRequest != nil && s.PullRequest.Number == other.PullRequest.Number
	}
	return other.Trigger == TriggerMergeGroup && s.SHA == other.SHA && s.HeadRef == other.HeadRef
}

// Reopens reports whether the event reopened its pull request.
func (s *GitEventSpec) Reopens() bool {
	return s.PullRequest != nil && s.Comment == nil && (s.Action == "reopened" || s.Action == "reopen")
}

// Happened returns when the event happened by the Git service's clock, or when it was received if
// that is not known.
func (s *GitEventSpec) Happened() time.Time {
	latest := s.ReceivedAt.Add(aheadLimit)
	switch {
	case s.HappenedAt == nil:
		return s.ReceivedAt.Time
	case s.HappenedAt.After(latest):
		return latest
	}
	return s.HappenedAt.Time
}

// Precedes reports whether the event is older than another one, which happened at then and cancels
// older events. Within one second, a close is after everything except a reopening, and comments are
// ordered by their ids. Otherwise the order of receipt decides. A reopening that was received after
// a close of the same second is the newer one: otherwise nothing would run it.
func (s *GitEventSpec) Precedes(other *GitEventSpec, then time.Time) bool {
	switch happened := s.Happened(); {
	case !happened.Equal(then):
		return happened.Before(then)
	case other.Closes() && s.Reopens():
		return s.ReceivedAt.Time.Before(other.ReceivedAt.Time)
	case other.Closes():
		return true
	case s.Comment != nil && other.Comment != nil:
		return s.Comment.ID <= other.Comment.ID
	}
	return !s.ReceivedAt.After(other.ReceivedAt.Time)
}

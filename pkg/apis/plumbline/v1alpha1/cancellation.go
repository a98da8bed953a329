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

// Cancellation ends runs before they are over: the pull request was closed, or somebody asked for
// it. The plan of the event that cancels has it, and each event whose runs it ends has it in an
// annotation (plumbline.CancelAnnotation). See docs/adr/0035.
type Cancellation struct {
	// By is the login of who did it; empty if the Git service does not tell.
	// +optional
	By string `json:"by,omitempty"`
	// Names are those of the pipelines whose runs end; none stands for all.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	Names []string `json:"names,omitempty"`
	// Ref is the branch or tag whose runs end, in full, if somebody asked for it on a commit:
	// others may be at the same commit. Empty for what ends the runs of a pull request.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Ref string `json:"ref,omitempty"`
	// Why is a sentence for people, without its full stop: "octocat closed the pull request".
	Why string `json:"why"`
	// At is when it happened by the Git service's clock, to the second. What happened later goes
	// on.
	At metav1.Time `json:"at"`
}

const (
	// MaxCancellations is how many cancellations an event takes note of. Each is an annotation, and
	// all of them together have to fit into 256 KiB.
	MaxCancellations = 50
	// aheadLimit is how much the clock of a Git service may be ahead of the receiver's. What is
	// said to happen later than that happened when it was received: a body that is not signed may
	// say anything.
	aheadLimit = 5 * time.Minute
)

// Covers reports whether it ends the run of a pipeline. The dash at the end of a generateName may
// be left out. The name "" stands for whatever the event starts: only a cancellation of all ends
// that.
func (c *Cancellation) Covers(pipeline string) bool {
	if len(c.Names) == 0 {
		return true
	}
	return pipeline != "" &&
		(slices.Contains(c.Names, pipeline) || slices.Contains(c.Names, strings.TrimSuffix(pipeline, "-")))
}

// Cancelled returns why the run of a pipeline ends before it is over, nil if it does not. Of
// several cancellations it is the one that happened first. The name "" is that of Covers. As long
// as the ref of an event is not known, nothing that is about one ref ends it.
func (e *GitEvent) Cancelled(pipeline string) *Cancellation {
	var first *Cancellation
	for _, name := range e.cancellations() {
		c := &Cancellation{}
		if err := json.Unmarshal(
			[]byte(e.Annotations[name]),
			c,
		); err != nil || !c.Covers(pipeline) ||
			c.Ref != "" && c.Ref != e.GitRef() {
			continue // not ours, or a newer version's
		}
		if first == nil || c.At.Before(&first.At) {
			first = c
		}
	}
	return first
}

// GitRef is the branch or tag that an event is of, in full ("refs/heads/main"). It is empty for
// events of pull requests, and as long as it is not known: only the plan knows that of a comment on
// a commit and of a re-run.
func (e *GitEvent) GitRef() string {
	switch {
	case e.Spec.PullRequest != nil:
		return ""
	case e.Spec.Comment == nil && e.Spec.Rerun == nil:
		return e.Spec.BaseRef
	case e.Status.Plan != nil:
		return e.Status.Plan.Ref
	}
	return ""
}

// cancellations returns the names of the annotations, in order.
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

// Knows reports whether the event has every cancellation that another version of it has.
func (e *GitEvent) Knows(other *GitEvent) bool {
	for name := range other.Annotations {
		if _, known := e.Annotations[name]; !known && strings.HasPrefix(name, plumbline.CancelAnnotation) {
			return false
		}
	}
	return true
}

// Needs reports whether a cancellation says something new to an event that is open: no other one
// ends the same runs, and the event has or may have one of the name.
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

// CancelsAs returns the name and the value of the annotation that tells another event of the
// cancellation of an event.
func (c *Cancellation) CancelsAs(event string) (name, value string, err error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", "", fmt.Errorf("encoding the cancellation of %s: %w", event, err)
	}
	return plumbline.CancelAnnotation + event, string(data), nil
}

// Closes reports whether a pull request is not open any more by the event: it was closed or merged.
func (s *GitEventSpec) Closes() bool {
	return s.PullRequest != nil && s.Comment == nil && slices.Contains([]string{"closed", "close", "merge"}, s.Action)
}

// Reopens reports whether the pull request was closed before the event and is not after it.
func (s *GitEventSpec) Reopens() bool {
	return s.PullRequest != nil && s.Comment == nil && (s.Action == "reopened" || s.Action == "reopen")
}

// Happened is when the event happened by the Git service's clock, or when it was received where
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

// Precedes reports whether the event happened before another one, which happened then and ends what
// is older. Of two within one second a pull request is closed after everything but its reopening,
// and comments have the order of their numbers; else the one that was received first is the older
// one. What is reopened is so after a close that came in the same second: otherwise nothing would
// run it.
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

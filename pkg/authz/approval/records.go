// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// Heads returns the heads that the recorded deliveries of a pull request contain. A delivery
// without a time proves nothing.
func Heads(recorded []history.Record) (heads []Head) {
	for _, r := range recorded {
		spec := &r.Event.Spec
		if spec.PullRequest == nil || spec.Comment != nil || spec.HappenedAt == nil {
			continue
		}
		heads = append(heads,
			Head{SHA: spec.SHA, Before: spec.Before, At: spec.HappenedAt.Time, Received: r.Event.RecordedAt()})
	}
	return heads
}

// Standing returns the last approval on record for the event's commit, nil if there is none. An
// approval for another target branch or source repository does not count. An approval of another
// commit, which was remembered, is decided again for each event.
func Standing(recorded []history.Record, event *v1alpha1.GitEventSpec) *v1alpha1.Approval {
	for _, r := range slices.Backward(recorded) {
		plan := r.Event.Status.Plan
		if plan != nil && plan.HeadSHA == event.SHA && plan.Approval != nil && plan.Approval.SHA == "" &&
			Changed(plan.Approval, event) == "" {
			return plan.Approval
		}
	}
	return nil
}

// Changed returns what has changed since an approval was given, "" if the pull request still goes
// from the same repository to the same branch.
func Changed(given *v1alpha1.Approval, event *v1alpha1.GitEventSpec) (what string) {
	switch pr := event.PullRequest; {
	case pr == nil || pr.HeadProjectID == 0 || given.HeadProjectID != pr.HeadProjectID:
		return "the branch of the pull request lives in another repository than then, or in none"
	case given.BaseRef != event.BaseRef:
		return "the pull request went to another target branch then"
	}
	return ""
}

// Waits reports whether an event of the commit waits or waited for approval, or may wait once it is
// planned because its actor is not the author of the pull request.
func Waits(recorded []history.Record, sha string) bool {
	for _, r := range recorded {
		if r.SHA() == sha && (r.Event.Status.Disposition == v1alpha1.DispositionPending || mayWait(r.Event)) {
			return true
		}
	}
	return false
}

func mayWait(event *v1alpha1.GitEvent) bool {
	spec := &event.Spec
	return spec.PullRequest != nil && spec.Comment == nil && event.Status.Plan == nil && !event.Settled() &&
		!strings.EqualFold(spec.Actor, spec.PullRequest.Author)
}

// PushedUnapproved reports whether another user than the pull request's author has pushed the
// commit, its event waits for approval or may once it is planned, and no user who may has run the
// commit since.
func PushedUnapproved(recorded []history.Record, sha string) (unread bool) {
	for _, r := range recorded {
		spec, st := &r.Event.Spec, &r.Event.Status
		switch {
		case r.SHA() != sha || spec.PullRequest == nil:
		case spec.Before != "" && (mayWait(r.Event) ||
			st.Disposition == v1alpha1.DispositionPending && !strings.EqualFold(spec.Actor, spec.PullRequest.Author)):
			unread = true
		case st.Disposition == v1alpha1.DispositionRuns && st.Plan != nil && st.Plan.Approval == nil:
			unread = false
		}
	}
	return unread
}

// Started reports whether an event has started runs of a commit.
func Started(event *v1alpha1.GitEvent, sha string) bool {
	plan := event.Status.Plan
	if plan == nil || plan.HeadSHA != sha {
		return false
	}
	return plan.Approval != nil || event.Status.Disposition == v1alpha1.DispositionRuns
}

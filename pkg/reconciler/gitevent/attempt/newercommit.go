// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// ReasonSuperseded is the reason of an event or run that waited while another commit took its place
// (B11).
const ReasonSuperseded = "Superseded"

// NewerCommit returns the commit that has taken the event's place, "" if none has. It asks Git once
// per reconcile, and only if the step has waited before: an event that does not wait costs no call,
// and its commit is current when its runs start. No commit replaces an event that Git has not
// confirmed yet, because a replica that does not have the event's commit names an older one.
//
// No commit replaces a run that has waited for a slot and for nothing else: all of these run, one
// after the other.
//
// Another commit is only accepted once the event's commit has been known for longer than any
// replica lags (git.Lag). Until then it may be an older one, and the step waits.
//
// No commit replaces an event that closes a pull request: a later push to its branch is not a head
// of that pull request.
func (a *Attempt) NewerCommit(ctx context.Context, step string) (string, error) {
	if a.Event.Spec.Closes() {
		return "", nil
	}
	event := a.Event.Spec.DeepCopy()
	if a.Planned() {
		event.SHA = a.Event.Status.Plan.HeadSHA
	}
	wait := a.Waits.Of(step)
	sha, err := a.Git.Superseding(
		ctx,
		event,
		wait != nil && !slices.Contains(
			[]string{fault.ReasonNotConfirmed, fault.ReasonConcurrencyLimit}, wait.Reason),
	)
	if left := git.Lag - a.Clock.Since(LearnedAt(a.Event)); sha != "" && left > 0 {
		return "", fault.Throttledf(fault.ReasonBusy, min(left, askAgain),
			"the Git service says that %s has taken its place, which may be outdated", sha)
	}
	return sha, err
}

// LearnedAt returns when Plumbline learned the event's commit. The delivery of a push has it; for a
// comment the plan asks for it. No replica of the Git service lags behind that by more than
// git.Lag. The time of a plan is that of a controller's clock, like the present.
func LearnedAt(event *v1alpha1.GitEvent) time.Time {
	if plan := event.Status.Plan; plan != nil && plan.At != nil {
		return plan.At.Time
	}
	// A receiver's clock may be ahead, and the API server's writes whole seconds.
	created := event.CreationTimestamp.Add(time.Second)
	if !event.CreationTimestamp.IsZero() && created.Before(event.Spec.ReceivedAt.Time) {
		return created
	}
	return event.Spec.ReceivedAt.Time
}

// askAgain is how soon the Git service is asked again if it may not have received a commit.
const askAgain = 5 * time.Second

// ReasonCancelled is the reason of the result of a run that is not created any more.
const ReasonCancelled = "Cancelled"

// SupersededBy returns the sentence that people read.
func SupersededBy(sha string) string { return "superseded by " + sha }

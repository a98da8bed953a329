// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// ReasonSuperseded ends what waited while Git got another commit in the event's place (B11).
const ReasonSuperseded = "Superseded"

// Superseding returns the commit that has taken the event's place, "" while none has. Git is asked
// once a reconcile, and only if the step has waited before: an event that nothing stops costs no
// call, and what it starts is true when it starts. Nothing takes the place of an event that Git has
// not confirmed yet: the replica that does not know it knows what was before.
//
// Nothing takes the place of a run that has waited for a slot and for nothing else: all of them
// run, one after the other.
//
// That another commit has is believed once this one has been known for longer than any replica lags
// (git.Lag): until then it may be one of before, and the step waits.
//
// Nothing takes the place of an event that closes a pull request: what is pushed to its branch
// afterwards is none of its heads.
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
		wait != nil && wait.Reason != fault.ReasonNotConfirmed && wait.Reason != fault.ReasonConcurrencyLimit,
	)
	if left := git.Lag - a.Clock.Since(LearnedAt(a.Event)); sha != "" && left > 0 {
		return "", fault.Throttledf(
			fault.ReasonBusy,
			min(left, askAgain),
			"the Git service says that %s has taken its place, which may be of before",
			sha,
		)
	}
	return sha, err
}

// Learnt is when Plumbline had the event's commit: the delivery of a push has it, and of a comment
// the plan asks for it. No replica of the Git service lags behind that by more than git.Lag. A
// plan's time is that of a controller's clock, as the present is.
func LearnedAt(event *v1alpha1.GitEvent) time.Time {
	if plan := event.Status.Plan; plan != nil && plan.At != nil {
		return plan.At.Time
	}
	// A receiver's clock may be ahead, and the API server's writes whole seconds.
	if created := event.CreationTimestamp.Add(
		time.Second,
	); !event.CreationTimestamp.IsZero() &&
		created.Before(event.Spec.ReceivedAt.Time) {
		return created
	}
	return event.Spec.ReceivedAt.Time
}

// askAgain is how soon the Git service is asked again that may not have heard of a commit.
const askAgain = 5 * time.Second

// ReasonCancelled ends what is not to be created any more.
const ReasonCancelled = "Cancelled"

// SupersededBy is the sentence for people.
func SupersededBy(sha string) string { return "superseded by " + sha }

// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// ReasonSuperseded ends what waited while Git got another commit in the event's place (B11).
const ReasonSuperseded = "Superseded"

// Superseding returns the commit that has taken the event's place, "" while none has. Git is asked once a reconcile, and
// only if the step has waited before: an event that nothing stops costs no call, and what it starts is true when it starts.
// Nothing takes the place of an event that Git has not confirmed yet: the replica that does not know it knows what was before.
//
// Nothing takes the place of a run that has waited for a slot and for nothing else: all of them run, one after the other.
//
// Nothing takes the place of an event that closes a pull request: what is pushed to its branch afterwards is none of its heads.
func (a *Attempt) Superseding(ctx context.Context, step string) (string, error) {
	if a.Event.Spec.Closes() {
		return "", nil
	}
	event := a.Event.Spec.DeepCopy()
	if a.Planned() {
		event.SHA = a.Event.Status.Plan.HeadSHA
	}
	wait := a.Waits.Of(step)
	return a.Git.Superseding(ctx, event, wait != nil && wait.Reason != fault.ReasonNotConfirmed && wait.Reason != fault.ReasonConcurrencyLimit)
}

// ReasonCancelled ends what is not to be created any more.
const ReasonCancelled = "Cancelled"

// SupersededBy is the sentence for people.
func SupersededBy(sha string) string { return "superseded by " + sha }

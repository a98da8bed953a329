// SPDX-License-Identifier: Apache-2.0

package attempt

import "context"

// ReasonSuperseded ends what waited while Git got another commit in the event's place (B11).
const ReasonSuperseded = "Superseded"

// Superseding returns the commit that has taken the event's place, "" while none has. Git is asked once a reconcile, and
// only if the step has waited before: an event that nothing stops costs no call, and what it starts is true when it starts.
func (a *Attempt) Superseding(ctx context.Context, step string) (string, error) {
	event := a.Event.Spec.DeepCopy()
	if a.Planned() {
		event.SHA = a.Event.Status.Plan.HeadSHA
	}
	return a.Git.Superseding(ctx, event, a.Waits.Of(step) != nil)
}

// SupersededBy is the sentence for people.
func SupersededBy(sha string) string { return "superseded by " + sha }

// SPDX-License-Identifier: Apache-2.0

// Package access decides who may start a run. It is a chain of rules over values: no client, no clock, no logger.
// Whatever no rule allows is not allowed.
package access

import "github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"

// Decision is what may be done for an event.
type Decision int

const (
	// Unapproved is the zero value: nothing is created and the event waits for someone who may approve it.
	Unapproved Decision = iota
	// NeedsWriteAccess asks the caller to look CanWrite up at the Git service and to decide again. It allows nothing.
	NeedsWriteAccess
	// NeedsCommenterAccess asks the same for CommenterCanWrite.
	NeedsCommenterAccess
	// NeedsActorAccess asks the same for ActorCanWrite.
	NeedsActorAccess
	// Allowed lets the event's pipelines run.
	Allowed
)

// String returns the decision's name, for logs and tests.
func (d Decision) String() string {
	switch d {
	case Allowed:
		return "Allowed"
	case NeedsWriteAccess:
		return "NeedsWriteAccess"
	case NeedsCommenterAccess:
		return "NeedsCommenterAccess"
	case NeedsActorAccess:
		return "NeedsActorAccess"
	case Unapproved:
		return "Unapproved"
	}
	return "unknown"
}

// Input is what is known of an event and of the account it is attributed to.
type Input struct {
	// Trigger is what the event is about.
	Trigger v1alpha1.Trigger
	// SameRepository is true when a pull request's branch lives in the repository it is to be merged into: whoever
	// pushed it has write access. False when the head repository is another one, unknown or deleted.
	SameRepository bool
	// CanWrite tells whether the author has write access, as the Git service's live API answered; nil when it was not
	// asked yet. An error of the API is no answer: the caller waits.
	CanWrite *bool
	// Comment is true when the event is a comment on the pull request. Who wrote it must have write access, and the pull
	// request must be allowed by itself: a comment starts what the head is by then, which may not be what was commented on.
	Comment bool
	// Restricted is true when the Repository says who may start pull requests in a way that cannot be evaluated here. Then
	// nobody may: a restriction that does not hold would be worse.
	Restricted bool
	// CommenterCanWrite is like CanWrite, of who wrote the comment.
	CommenterCanWrite *bool
	// Label is true when the event is a label that was set. A label asks for pipelines, so whoever set it must be able to
	// write, wherever the branch lives: the Git services let people label who may not push.
	Label bool
	// ActorCanWrite is like CanWrite, of who caused the event: who opened or reopened the pull request, pushed to its branch
	// or set the label. To the branch of a fork others than the author can push.
	ActorCanWrite *bool
	// Unconfirmed is true when the Git service, asked for who caused the event, names nobody, and the delivery is not signed.
	Unconfirmed bool
}

// Rule gives a decision and true, or false when it has nothing to say about the input.
type Rule func(Input) (Decision, bool)

// Decide asks the rules in order and takes the first decision. The sentence says why, for people.
func Decide(in Input) (Decision, string) {
	for _, step := range chain() {
		if decision, ok := step.rule(in); ok {
			return decision, step.reason
		}
	}
	return Unapproved, "No rule allows this event to start a run."
}

// step is one rule of the chain with the sentence that explains its decision.
type step struct {
	rule   Rule
	reason string
}

// chain is the policy, in the order in which it is asked.
func chain() []step {
	return []step{
		{restricted, "The Repository's settings have a policy of who may start runs of pull requests, which this version cannot evaluate, so nobody may."},
		{commenterUnknown, "Whether the author of the comment has write access to this repository is not known yet."},
		{commenterStranger, "The author of the comment has no write access to this repository."},
		{labellerUnknown, "Whether who set the label has write access to this repository is not known yet."},
		{labellerUnconfirmed, "The Git service does not confirm who set the label."},
		{labellerStranger, "Who set the label has no write access to this repository."},
		{pushed, "Whoever can push to the repository may start its pipelines."},
		{sameRepository, "The branch of the pull request lives in this repository, so its author can push to it."},
		{writeAccessUnknown, "Whether the author of the pull request has write access to this repository is not known yet."},
		{stranger, "The author of the pull request has no write access to this repository."},
		{actorUnknown, "Whether who changed the pull request has write access to this repository is not known yet."},
		{actorUnconfirmed, "The Git service does not confirm who changed the pull request: it shows no such activity of its branch."},
		{actorStranger, "The author of the pull request has write access to this repository, but not who changed it."},
		{writer, "The author of the pull request has write access to this repository."},
	}
}

func restricted(in Input) (Decision, bool) {
	return Unapproved, in.Restricted && (in.Trigger != v1alpha1.TriggerPush || in.Comment)
}

func commenterUnknown(in Input) (Decision, bool) {
	return NeedsCommenterAccess, in.Comment && in.CommenterCanWrite == nil
}

func commenterStranger(in Input) (Decision, bool) {
	return Unapproved, in.Comment && in.CommenterCanWrite != nil && !*in.CommenterCanWrite
}

func labellerUnknown(in Input) (Decision, bool) {
	return NeedsActorAccess, in.Label && in.ActorCanWrite == nil
}

func labellerUnconfirmed(in Input) (Decision, bool) {
	return Unapproved, in.Label && in.Unconfirmed
}

func labellerStranger(in Input) (Decision, bool) {
	return Unapproved, in.Label && !may(in.ActorCanWrite)
}

func pushed(in Input) (Decision, bool) {
	return Allowed, in.Trigger == v1alpha1.TriggerPush
}

func sameRepository(in Input) (Decision, bool) {
	return Allowed, in.Trigger == v1alpha1.TriggerPullRequest && in.SameRepository
}

func writeAccessUnknown(in Input) (Decision, bool) {
	return NeedsWriteAccess, in.Trigger == v1alpha1.TriggerPullRequest && in.CanWrite == nil
}

func stranger(in Input) (Decision, bool) {
	return Unapproved, in.Trigger == v1alpha1.TriggerPullRequest && !may(in.CanWrite)
}

// actorUnknown has nothing to say of a comment: who wrote it has been asked for already.
func actorUnknown(in Input) (Decision, bool) {
	return NeedsActorAccess, in.Trigger == v1alpha1.TriggerPullRequest && !in.Comment && in.ActorCanWrite == nil
}

func actorUnconfirmed(in Input) (Decision, bool) {
	return Unapproved, in.Trigger == v1alpha1.TriggerPullRequest && !in.Comment && in.Unconfirmed
}

func actorStranger(in Input) (Decision, bool) {
	return Unapproved, in.Trigger == v1alpha1.TriggerPullRequest && !in.Comment && !may(in.ActorCanWrite)
}

func writer(in Input) (Decision, bool) {
	return Allowed, in.Trigger == v1alpha1.TriggerPullRequest && may(in.CanWrite)
}

// may tells whether the answer is known and yes.
func may(answer *bool) bool { return answer != nil && *answer }

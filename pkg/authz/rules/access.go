// SPDX-License-Identifier: Apache-2.0

// Package rules decides who may start a run. It is a chain of rules over values: no client, no
// clock, no logger. Whatever no rule allows is not allowed. What a rule has to know of an account
// it asks for: the caller looks that up and decides again, so that the Git service is asked only
// for what the answer depends on.
package rules

import (
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Verdict is what may be done for an event.
type Verdict int

const (
	// Unapproved is the zero value: nothing is created and the event waits for someone who may
	// approve it.
	Unapproved Verdict = iota
	// Asks allows nothing: the caller answers the decision's question and decides again.
	Asks
	// Allowed lets the event's pipelines run, or its command be done.
	Allowed
)

// String returns the verdict's name, for logs and tests.
func (v Verdict) String() string {
	return [...]string{"Unapproved", "Asks", "Allowed"}[v]
}

// Decision is what the first rule that has something to say has decided.
type Decision struct {
	Verdict Verdict
	// Question is what has to be known first, if the verdict is Asks.
	Question Question
	// Why is the rule's sentence, for people.
	Why string
}

// Command is what a comment asks for. Which right that needs is in Input.grants.
type Command string

// The commands, by the names that people write. A comment without one (on-comment) has none.
const (
	Test     Command = "test"
	Retest   Command = "retest"
	OkToTest Command = "ok-to-test"
	Cancel   Command = "cancel"
)

// Input is what is known of an event.
type Input struct {
	// Trigger is what the event is about.
	Trigger v1alpha1.Trigger
	// SameRepository is true when a pull request's branch lives in the repository it is to be
	// merged into: only accounts with write access can push to it. Who opened the pull request need
	// not be one of them. False when the head repository is another one, unknown or deleted.
	SameRepository bool
	// App is true when the author of the pull request is an App of the Git service. An App has no
	// permission that could be asked for: a branch of the repository is what shows that it can
	// write.
	App bool
	// Label is true when the event is a label that was set. A label asks for pipelines, so whoever
	// set it must have the right to, wherever the branch lives: the Git services let people label
	// who may not push.
	Label bool
	// Comment is true when the event is a comment, and Command what it asks for. Who wrote it must
	// have the right to, and the pull request must be allowed by itself or Approved: a comment
	// starts what the head is by then, which may not be what was commented on.
	Comment bool
	Command Command
	// Own is true when whoever wrote the comment is the author of the pull request.
	Own bool
	// Approved is true when somebody who may has approved the commit that runs (S21): it runs
	// whoever its author is.
	Approved bool

	// Restricted is true when the Repository says who may start pull requests in a way that cannot
	// be evaluated here. Then nobody may: a restriction that does not hold would be worse.
	Restricted bool
	// Policy are the teams that may act instead of whoever can write; nil when the Repository has
	// no policy.
	Policy *pacv1alpha1.Policy
	// Members is true when members of the organization or project count who cannot write.
	Members bool
	// Trusts is true when the Repository trusts some accounts with their own pull requests.
	Trusts bool

	// Known are the answers to the questions that were asked so far. An error of the Git service is
	// no answer: the caller waits.
	Known map[Question]bool
}

// Decide asks the rules in order and takes the first decision.
func Decide(in Input) Decision { return decide(rules(), in) }

func decide(chain []rule, in Input) Decision {
	for _, r := range chain {
		if verdict, question, ok := r.decides(in); ok {
			return Decision{Verdict: verdict, Question: question, Why: r.why()}
		}
	}
	return Decision{Why: "No rule allows this event to start a run."}
}

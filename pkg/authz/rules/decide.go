// SPDX-License-Identifier: Apache-2.0

// Package rules decides who may start a run: an ordered list of rules (rules.go) over values,
// without a client, clock or logger. What no rule allows is denied. If a rule needs a fact about an
// account, Decide returns the question; the caller looks the fact up and decides again. So the Git
// service is asked only for what the result depends on.
package rules

import (
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Verdict is the result of the rules for an event.
type Verdict int

const (
	// Unapproved is the zero value: nothing is created, and the event waits for a user who may
	// approve it.
	Unapproved Verdict = iota
	// Asks means that the caller must answer the question and decide again.
	Asks
	// Allowed means that the event's pipelines may run, or its command may be carried out.
	Allowed
)

// String returns the verdict's name, for logs and tests.
func (v Verdict) String() string {
	return [...]string{"Unapproved", "Asks", "Allowed"}[v]
}

// Result is that of the first rule that applies.
type Result struct {
	Verdict Verdict
	// Question is the fact that is needed first, if the verdict is Asks.
	Question Question
	// Why is the rule's sentence, for people.
	Why string
}

// Command is the command of a comment. Input.grants says which right it needs.
type Command string

// The commands as users write them. A comment without a command (on-comment) has none.
const (
	Test     Command = "test"
	Retest   Command = "retest"
	OkToTest Command = "ok-to-test"
	Cancel   Command = "cancel"
	Why      Command = "why"
)

// Input is what the rules decide by.
type Input struct {
	// Trigger is the kind of the event.
	Trigger v1alpha1.Trigger
	// SameRepository is true when the pull request's branch is in its target repository. Only
	// accounts with write access can push to it, but its author need not be one of them. It is
	// false when the head repository is another one, unknown or deleted.
	SameRepository bool
	// App is true when the author of the pull request is an App of the Git service. An App has no
	// permission that could be read; a branch in the repository shows that it has write access.
	App bool
	// Label is true when the event is a label that was set. A label may start pipelines, so the
	// user who set it must have the right to, wherever the branch is: users without write access
	// may set labels too.
	Label bool
	// Comment is true when the event is a comment; Command is its command. The author of the
	// comment must have the right to give it, and the pull request must be allowed by itself or
	// Approved: a comment starts the current head, which may not be the commit that was commented
	// on.
	Comment bool
	Command Command
	// Own is true when the author of the comment is the author of the pull request.
	Own bool
	// Approved is true when the commit is approved by a user who may approve it (S21). Its
	// author does not matter then.
	Approved bool

	// Restricted is true when the Repository restricts pull requests in a way that cannot be
	// evaluated here. Then no user may start them: ignoring the restriction would be worse.
	Restricted bool
	// Policy has the teams that may act instead of users with write access; nil when the Repository
	// has no policy.
	Policy *pacv1alpha1.Policy
	// Members is true when members of the organization or project without write access may start
	// runs.
	Members bool
	// Trusts is true when the Repository trusts some accounts with their own pull requests.
	Trusts bool

	// Known has the answers so far. An error of the Git service is not an answer: the caller
	// retries.
	Known map[Question]bool
}

// Decide tries the rules in order and returns the result of the first that applies.
func Decide(in Input) Result { return decide(rules(), in) }

func decide(chain []rule, in Input) Result {
	for _, r := range chain {
		if verdict, question, ok := r.decides(in); ok {
			return Result{Verdict: verdict, Question: question, Why: r.why()}
		}
	}
	return Result{Why: "No rule allows this event to start a run."}
}

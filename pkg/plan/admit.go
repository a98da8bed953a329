// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/access"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/approval"
	"github.com/plumbline-ci/plumbline/pkg/match"
)

// admit asks who may start the event and returns its end when it is not allowed, nil when it is.
func (p *planner) admit(ctx context.Context) (*Plan, error) {
	decision, err := p.decide(ctx)
	if err != nil {
		return nil, err
	}
	simple := decision.Verdict == access.Allowed && !p.binds()
	if simple {
		p.heeded = true
		decision = p.meant(decision)
	} else {
		decision, err = p.approve(ctx, decision)
	}
	switch {
	case err != nil:
		return nil, err
	case decision.Verdict == access.Allowed && simple:
		return nil, p.waited(ctx)
	case decision.Verdict == access.Allowed:
		return nil, nil
	}
	p.endsPending = false // it goes on waiting
	if p.spec.EventType == match.LabelEvent || p.spec.Comment != nil || p.rerun != nil {
		// The check of the pull request's own event asks for approval already; each label would add another one. A
		// comment and a re-run must leave nothing on the commit unless they may start something.
		return p.end(v1alpha1.DispositionIgnored, p.spec.SHA, "NotApproved", decision.Why), nil
	}
	reason := "PendingApproval"
	if p.forgotten {
		reason = approval.ReasonForgotten
	}
	return p.end(v1alpha1.DispositionPending, p.spec.SHA, reason, decision.Why), nil
}

// decide asks who may start the event, and the Git service only for what the answer depends on, about each account once.
// An error is never an answer.
func (p *planner) decide(ctx context.Context) (access.Decision, error) {
	return p.people.answered(ctx, p.accessInput(), access.Commenter, access.Author, access.Actor)
}

// accessInput is what decides about the event as far as it is known without asking.
func (p *planner) accessInput() access.Input {
	spec := p.spec
	in := access.Input{
		Trigger: spec.Trigger, Comment: spec.Comment != nil, Label: spec.EventType == match.LabelEvent, Restricted: p.Repository.Spec.Restricts() != "",
		SameRepository: p.sameRepository(), Approved: p.approval != nil, Members: p.Config.MembersMayRun, Known: p.people.known,
	}
	if p.command != nil {
		in.Command = access.Command(p.command.Kind)
	}
	if p.rerun != nil && spec.PullRequest != nil { // it is as a /retest of who pressed the button, who may write (again)
		in.Comment, in.Command = true, access.Retest
		in.Known[access.Question{Who: access.Commenter, What: access.Writer}] = true
	}
	in.Own = in.Comment && spec.PullRequest != nil && same(spec.Sender, spec.PullRequest.Author)
	if settings := p.Repository.Spec.Settings; settings != nil {
		in.Policy, in.Trusts = settings.Policy, len(settings.Trusted) > 0
	}
	return in
}

// answered decides with the answers to all questions about some people: it asks if the next one is about somebody else.
func (l *lookups) answered(ctx context.Context, in access.Input, about ...access.Person) (access.Decision, error) {
	for {
		decision := access.Decide(in)
		if decision.Verdict != access.Asks || !slices.Contains(about, decision.Question.Who) {
			return l.explained(decision), nil
		}
		if err := l.answer(ctx, in, decision.Question); err != nil {
			return access.Decision{}, err
		}
	}
}

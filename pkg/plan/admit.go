// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/access"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/match"
)

// admit asks who may start the event and returns its end when it is not allowed, nil when it is.
func (p *planner) admit(ctx context.Context) (*Plan, error) {
	decision, why, err := p.decide(ctx)
	if err != nil || decision == access.Allowed {
		return nil, err
	}
	if p.spec.EventType == match.LabelEvent || p.spec.Comment != nil {
		// The check of the pull request's own event asks for approval already; each label would add another one. A
		// comment must leave nothing on the commit unless it may start something.
		return p.end(v1alpha1.DispositionIgnored, p.spec.SHA, "NotApproved", why), nil
	}
	return p.end(v1alpha1.DispositionPending, p.spec.SHA, "PendingApproval", why), nil
}

// decide asks who may start the event, and the Git service only for what the answer depends on, about each account once.
// An error is never an answer.
func (p *planner) decide(ctx context.Context) (access.Decision, string, error) {
	spec := p.spec
	in := access.Input{
		Trigger: spec.Trigger, Comment: spec.Comment != nil, Label: spec.EventType == match.LabelEvent, Restricted: p.Repository.Spec.Restricts() != "",
	}
	if spec.PullRequest != nil {
		in.SameRepository = spec.PullRequest.HeadProjectID == spec.Project.ID && spec.Project.ID != 0
	}
	known := permissions{p: p, known: map[string]*bool{}}
	for {
		decision, why := access.Decide(in)
		answer := asked(&in, decision)
		if answer == nil {
			return decision, why, nil
		}
		user, err := p.account(ctx, decision)
		if err != nil {
			return access.Unapproved, "", err
		}
		if user == "" { // nobody is known who could be asked for
			return access.Unapproved, why, nil
		}
		if *answer, err = known.of(ctx, user); err != nil {
			return access.Unapproved, "", err
		}
		if decision == access.NeedsActorAccess && **answer {
			if *answer, in.Unconfirmed, err = known.confirmed(ctx, user); err != nil {
				return access.Unapproved, "", err
			}
		}
	}
}

// permissions remembers who may write, within one decision.
type permissions struct {
	p     *planner
	known map[string]*bool
}

func (k permissions) of(ctx context.Context, user string) (*bool, error) {
	if k.known[user] == nil {
		canWrite, err := k.p.Access.CanWrite(ctx, user)
		if err != nil {
			return nil, fmt.Errorf("asking for the access of %s: %w", user, err)
		}
		k.known[user] = &canWrite
	}
	return k.known[user], nil
}

// confirmed returns the permission of whom the Git service itself names as the one who acted. Who acted by the delivery may
// write: of a stranger it need not be asked.
func (k permissions) confirmed(ctx context.Context, told string) (canWrite *bool, unconfirmed bool, err error) {
	actor, err := k.p.Access.Actor(ctx, k.p.spec, told)
	if err != nil {
		return nil, false, fmt.Errorf("asking whether %s has acted: %w", told, err)
	}
	if actor == "" {
		return new(bool), true, nil
	}
	if strings.EqualFold(actor, told) {
		actor = told
	}
	canWrite, err = k.of(ctx, actor)
	return canWrite, false, err
}

// asked is where the answer to a decision's question belongs, nil when it asks nothing.
func asked(in *access.Input, decision access.Decision) **bool {
	switch decision {
	case access.NeedsCommenterAccess:
		return &in.CommenterCanWrite
	case access.NeedsWriteAccess:
		return &in.CanWrite
	case access.NeedsActorAccess:
		return &in.ActorCanWrite
	}
	return nil
}

// account is whom a decision asks about, "" when nobody is known.
func (p *planner) account(ctx context.Context, decision access.Decision) (string, error) {
	switch {
	case decision == access.NeedsCommenterAccess:
		return p.spec.Sender, nil
	case p.spec.PullRequest == nil:
		return "", nil
	case decision == access.NeedsWriteAccess:
		return p.spec.PullRequest.Author, nil
	case p.spec.Actor != "" || p.Actor == nil:
		return p.spec.Actor, nil
	}
	// A version before has recorded the event without it, or the definition of GitEvents is of a version before.
	actor, err := p.Actor(ctx)
	if err != nil {
		return "", fmt.Errorf("reading who acted: %w", err)
	}
	return actor, nil
}

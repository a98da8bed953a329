// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/access"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/approval"
	"github.com/plumbline-ci/plumbline/pkg/command"
	"github.com/plumbline-ci/plumbline/pkg/records"
)

// approve decides about what depends on an approval: it is not allowed by itself, and would be if its commit were approved; or it is a comment
// on a pull request to which others can push than those who may.
func (p *planner) approve(ctx context.Context, decision access.Decision) (access.Decision, error) {
	if decision.Verdict != access.Allowed {
		would, err := p.wouldBeAllowed(ctx)
		if err != nil || !would {
			return decision, err
		}
	}
	p.heeded = true
	recorded, err := p.recorded(ctx)
	if err != nil {
		return access.Decision{}, err
	}
	p.endsPending = approval.Waits(recorded, p.spec.SHA)
	names := p.command != nil && p.command.SHA != ""
	if standing := approval.Standing(recorded, p.spec); standing != nil && !names {
		p.approval = standing
		return access.Decision{Verdict: access.Allowed}, nil
	}
	if decision.Verdict != access.Allowed && !p.starts() {
		return p.remember(ctx, decision, recorded)
	}
	if end, ends := p.givesNone(decision); ends {
		return end, nil
	}
	heads, err := p.heads(ctx, recorded)
	if err != nil {
		return access.Decision{}, err
	}
	return p.bind(decision, heads), nil
}

// givesNone decides about an event that cannot approve its commit. It tells whether the event is one, or may run what is approved alone.
func (p *planner) givesNone(decision access.Decision) (end access.Decision, ends bool) {
	allowed := decision.Verdict == access.Allowed
	switch {
	case p.starts() && !allowed && same(p.spec.Sender, p.spec.PullRequest.Author): // S24, whatever the command
		return access.Decision{Why: decision.Why + " Somebody else than its author has to approve the commit."}, true
	case p.starts():
		return decision, false
	case p.remark() && allowed && p.endsPending:
		return access.Decision{Why: "The commit waits for approval, and a comment without a command gives none."}, true
	}
	return decision, !p.remark() || !allowed
}

// heads are the heads that the pull request has had: by the Git service's own word where it signs nothing, so that nobody can make them up.
func (p *planner) heads(ctx context.Context, recorded []records.Record) (heads []approval.Head, err error) {
	versions, err := p.History.Versions(ctx, p.spec)
	if err != nil {
		return nil, fmt.Errorf("asking which heads the pull request has had: %w", err)
	}
	if len(versions) == 0 {
		return approval.Heads(recorded), nil
	}
	for _, v := range versions {
		heads = append(heads, approval.Head{SHA: v.SHA, At: v.Since})
	}
	return heads, nil
}

// bind lets a comment run the commit that was the head when it was written (S21). On a pull request that is allowed by itself
// and of which nothing is on record there is nobody to be careful about.
func (p *planner) bind(decision access.Decision, heads []approval.Head) access.Decision {
	trusted := decision.Verdict == access.Allowed
	if trusted && len(heads) == 0 {
		return p.meant(decision)
	}
	asked := p.written()
	if asked.SHA == "" && p.Config.RequireApprovedSHA && (!trusted || asked.Kind == command.OkToTest) {
		return access.Decision{Why: fmt.Sprintf("An approval has to name its commit here (require-ok-to-test-sha). The head of the pull request is %s: "+
			"after reading it write /ok-to-test %s.", p.spec.SHA, p.spec.SHA)}
	}
	comment := approval.Comment{Received: p.spec.ReceivedAt.Time, SHA: asked.SHA}
	if at := p.spec.HappenedAt; at != nil {
		comment.At = at.Time
	}
	if approved, why := approval.Decide(comment, p.spec.SHA, heads); !approved {
		return access.Decision{Why: why}
	}
	if !trusted || p.endsPending {
		p.approval = &v1alpha1.Approval{
			By: p.spec.Sender, Event: p.Event.Name, BaseRef: p.spec.BaseRef, HeadProjectID: p.spec.PullRequest.HeadProjectID,
		}
	}
	return access.Decision{Verdict: access.Allowed}
}

// written is the command that a comment has, the zero one if it has none.
func (p *planner) written() command.Command {
	if p.command == nil {
		return command.Command{}
	}
	return *p.command
}

// meant is a decision to allow, unless the command names a commit that is not the head: then something else was meant, whoever wrote it.
func (p *planner) meant(allowed access.Decision) access.Decision {
	if p.command == nil || p.command.SHA == "" {
		return allowed
	}
	if why := approval.Misnamed(p.command.SHA, p.spec.SHA); why != "" {
		return access.Decision{Why: why}
	}
	return allowed
}

// wouldBeAllowed tells whether nothing but an approval of the commit is missing.
func (p *planner) wouldBeAllowed(ctx context.Context) (bool, error) {
	if p.spec.PullRequest == nil {
		return false, nil
	}
	p.approval = &v1alpha1.Approval{}
	decision, err := p.decide(ctx)
	p.approval = nil
	return decision.Verdict == access.Allowed, err
}

// starts tells whether the event is a command that starts runs of a pull request.
func (p *planner) starts() bool {
	return p.command != nil && p.command.Kind != command.Cancel && p.spec.PullRequest != nil
}

// binds tells whether an event that is allowed by itself depends on what is on record of its commit nevertheless: what was approved runs apart
// again (S23).
func (p *planner) binds() bool {
	return (p.starts() || p.remark() || p.rerun != nil) && p.othersPush()
}

// othersPush tells whether others can push to the branch of a pull request than those who may start its pipelines: it lives in another
// repository, or a policy says who may.
func (p *planner) othersPush() bool {
	settings := p.Repository.Spec.Settings
	return p.spec.PullRequest != nil && (!p.sameRepository() || settings != nil && settings.Policy != nil)
}

// sameRepository tells whether a pull request's branch lives in the repository it is to be merged into.
func (p *planner) sameRepository() bool {
	pr := p.spec.PullRequest
	return pr != nil && pr.HeadProjectID == p.spec.Project.ID && p.spec.Project.ID != 0
}

// waited notes whether the commit of a pull request that is allowed may show that it waits for approval, because that is over now. That of
// one that was just opened shows nothing yet.
func (p *planner) waited(ctx context.Context) error {
	first := p.spec.Action == "opened" || p.spec.Action == "open"
	if p.spec.Comment != nil || p.rerun != nil || !p.othersPush() || first && !v1alpha1.Reopened(p.Event.Name) {
		return nil
	}
	recorded, err := p.recorded(ctx)
	p.endsPending = approval.Waits(recorded, p.spec.SHA)
	return err
}

// recorded is what was recorded of the event's subject. It is asked for once.
func (p *planner) recorded(ctx context.Context) ([]records.Record, error) {
	if p.past != nil {
		return *p.past, nil
	}
	var all []records.Record
	var err error
	switch {
	case p.rerun != nil && p.RecordsOf != nil: // it was recorded as one of its commit
		all, err = p.RecordsOf(ctx, p.spec.Subject())
	case p.Records != nil:
		all, err = p.Records(ctx)
	}
	if err != nil {
		return nil, err
	}
	p.past = &all
	return all, nil
}

// approvalNote is told with the result of each run that somebody's approval has started.
func (p *planner) approvalNote() string {
	if p.approval == nil {
		return ""
	}
	return p.approval.Says(p.spec.SHA)
}

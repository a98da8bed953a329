// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/approval"
	"github.com/plumbline-ci/plumbline/pkg/authz/rules"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/command"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// approve decides about what depends on an approval: it is not allowed by itself, and would be if
// its commit were approved; or it is a comment on a pull request to which others can push than
// those who may.
func (m *matter) approve(ctx context.Context, decision rules.Decision) (rules.Decision, error) {
	if decision.Verdict != rules.Allowed {
		would, err := m.wouldBeAllowed(ctx)
		if err != nil || !would {
			return decision, err
		}
	}
	m.Heeded = true
	recorded, err := m.sources.Recorded(ctx)
	if err != nil {
		return rules.Decision{}, err
	}
	m.EndsPending = approval.Waits(recorded, m.Spec.SHA)
	names := m.Command != nil && m.Command.SHA != ""
	if standing := approval.Standing(recorded, m.Spec); standing != nil && !names {
		m.Approval = standing
		return rules.Decision{Verdict: rules.Allowed}, nil
	}
	if decision.Verdict != rules.Allowed && !m.starts() {
		return m.remember(ctx, decision, recorded)
	}
	if end, ends := m.givesNone(decision, recorded); ends {
		return end, nil
	}
	heads, err := m.heads(ctx, recorded)
	if err != nil {
		return rules.Decision{}, err
	}
	return m.bind(decision, heads), nil
}

// givesNone decides about an event that cannot approve its commit. It reports whether the event is
// one, or may run what is approved alone.
func (m *matter) givesNone(decision rules.Decision, recorded []history.Record) (end rules.Decision, ends bool) {
	allowed := decision.Verdict == rules.Allowed
	switch {
	case m.starts() && !allowed && same(m.Spec.Sender, m.Spec.PullRequest.Author): // S24, whatever the command
		return rules.Decision{Why: decision.Why + " Somebody else than its author has to approve the commit."}, true
	case m.starts():
		return decision, false
	case m.remark() && allowed && m.EndsPending:
		return rules.Decision{Why: "The commit waits for approval, and a comment without a command gives none."}, true
	case m.again() && allowed && approval.Unread(recorded, m.Spec.SHA):
		return rules.Decision{
			Why: "Somebody else than its author has pushed the commit, and nobody has approved it yet.",
		}, true
	}
	return decision, !m.remark() || !allowed
}

// heads are the heads that the pull request has had: by the Git service's own word where it signs
// nothing, so that nobody can make them up.
func (m *matter) heads(ctx context.Context, recorded []history.Record) (heads []approval.Head, err error) {
	versions, err := m.sources.History.Versions(ctx, m.Spec)
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

// bind lets a comment run the commit that was the head when it was written (S21), on a writer's
// pull request as well: whoever may push to the fork that it comes from need not be a writer.
// Nobody but writers pushes to a branch of the repository itself: if nothing is on record of such a
// pull request, its head may run.
func (m *matter) bind(decision rules.Decision, heads []approval.Head) rules.Decision {
	trusted := decision.Verdict == rules.Allowed
	if trusted && len(heads) == 0 && SameRepository(m.Spec) {
		return m.meant(decision)
	}
	asked := m.written()
	if asked.SHA == "" && m.config.RequireApprovedSHA && (!trusted || asked.Kind == command.OkToTest) {
		return rules.Decision{
			Why: fmt.Sprintf(
				"An approval has to name its commit here (require-ok-to-test-sha). The head of the pull request is %s: "+
					"after reading it write /ok-to-test %s.",
				m.Spec.SHA,
				m.Spec.SHA,
			),
		}
	}
	comment := approval.Comment{Received: m.Spec.ReceivedAt.Time, SHA: asked.SHA}
	if at := m.Spec.HappenedAt; at != nil {
		comment.At = at.Time
	}
	if approved, why := approval.Decide(comment, m.Spec.SHA, heads); !approved {
		return rules.Decision{Why: why}
	}
	if !trusted || m.EndsPending {
		m.Approval = &v1alpha1.Approval{
			By: m.Spec.Sender, Event: m.Name, BaseRef: m.Spec.BaseRef, HeadProjectID: m.Spec.PullRequest.HeadProjectID,
		}
	}
	return rules.Decision{Verdict: rules.Allowed}
}

// written is the command that a comment has, the zero one if it has none.
func (m *matter) written() command.Command {
	if m.Command == nil {
		return command.Command{}
	}
	return *m.Command
}

// meant is a decision to allow, unless the command names a commit that is not the head: then
// something else was meant, whoever wrote it.
func (m *matter) meant(allowed rules.Decision) rules.Decision {
	if m.Command == nil || m.Command.SHA == "" {
		return allowed
	}
	if why := approval.Misnamed(m.Command.SHA, m.Spec.SHA); why != "" {
		return rules.Decision{Why: why}
	}
	return allowed
}

// wouldBeAllowed reports whether nothing but an approval of the commit is missing.
func (m *matter) wouldBeAllowed(ctx context.Context) (bool, error) {
	if m.Spec.PullRequest == nil {
		return false, nil
	}
	m.Approval = &v1alpha1.Approval{}
	decision, err := m.decide(ctx)
	m.Approval = nil
	return decision.Verdict == rules.Allowed, err
}

// starts reports whether the event is a command that starts runs of a pull request.
func (m *matter) starts() bool {
	return m.Command != nil && m.Command.Kind != command.Cancel && m.Spec.PullRequest != nil
}

// binds reports whether an event that is allowed by itself depends on what is on record of its
// commit nevertheless: what was approved runs apart again (S23), and what others have pushed may
// wait for approval.
func (m *matter) binds() bool {
	return (m.starts() || m.remark() || m.Rerun || m.again()) && m.othersPush()
}

// again reports whether an event is about a pull request whose head was there before: a label, or
// that it is opened again or made ready. Whoever has caused it need not have read what others have
// pushed.
func (m *matter) again() bool {
	return m.Spec.PullRequest != nil && m.Spec.Comment == nil && !m.Rerun && !m.wasPushed() && !m.justOpened()
}

// justOpened reports whether the event is that of a new pull request.
func (m *matter) justOpened() bool {
	return (m.Spec.Action == "opened" || m.Spec.Action == "open") && !v1alpha1.Reopened(m.Name)
}

// othersPush reports whether others can push to the branch of a pull request than those who may
// start its pipelines: it lives in another repository, or a policy says who may.
func (m *matter) othersPush() bool {
	settings := m.repository.Spec.Settings
	return m.Spec.PullRequest != nil && (!SameRepository(m.Spec) || settings != nil && settings.Policy != nil)
}

// waited notes whether the commit of a pull request that is allowed may show that it waits for
// approval, because that is over now. That of one that was just opened shows nothing yet, and on a
// branch of the repository itself only what an earlier policy has kept waiting does: a commit that
// was just pushed there is not asked about.
func (m *matter) waited(ctx context.Context) error {
	pushedByOwn := m.wasPushed() && !m.othersPush()
	if m.Spec.PullRequest == nil || m.Spec.Comment != nil || m.Rerun || m.justOpened() || pushedByOwn {
		return nil
	}
	recorded, err := m.sources.Recorded(ctx)
	m.EndsPending = approval.Waits(recorded, m.Spec.SHA)
	return err
}

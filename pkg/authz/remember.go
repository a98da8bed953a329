// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/approval"
	"github.com/plumbline-ci/plumbline/pkg/authz/owners"
	"github.com/plumbline-ci/plumbline/pkg/authz/rules"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// With remember-ok-to-test an approval of one commit lets run what the author of the pull request
// pushes later (S22). Each such commit is compared with the one that somebody has approved, and
// never with one that has run by that approval: many small steps lead no further than one. It is by
// the event of the push that this is found out, and nothing is kept but what is on record.

// remember decides about a commit that nobody has approved, and that runs by an approval of another
// one or not at all.
func (m *matter) remember(
	ctx context.Context,
	decision rules.Decision,
	recorded []history.Record,
) (rules.Decision, error) {
	if !m.config.RememberApprovals || decision.Verdict == rules.Allowed {
		return decision, nil
	}
	given, forgotten := approval.Given(recorded)
	if given == nil {
		return decision, nil
	}
	known := approval.Remembered(recorded, m.Spec.SHA)
	if !known && !m.wasPushed() { // the event of the push tells who has pushed it
		return decision, nil
	}
	why, err := "", error(nil)
	if !known {
		why, err = m.pushedBySomebodyElse(ctx)
	}
	if err != nil {
		return rules.Decision{}, err
	}
	if why != "" {
		decision.Why += fmt.Sprintf(" That %s has approved commit %s does not count: %s.", given.By, given.SHA, why)
		return decision, nil
	}
	why = "it is since commit " + forgotten
	if forgotten == "" {
		why, err = m.forgets(ctx, given)
	}
	if err != nil {
		return rules.Decision{}, err
	}
	if why != "" {
		m.Forgotten = true
		decision.Why += fmt.Sprintf(" That %s has approved commit %s is forgotten: %s.", given.By, given.SHA, why)
		return decision, nil
	}
	m.Approval = given
	return rules.Decision{Verdict: rules.Allowed}, nil
}

// wasPushed reports whether the event is that of a push to the pull request's branch.
func (m *matter) wasPushed() bool {
	return m.Spec.Comment == nil && m.Spec.Before != "" &&
		slices.Contains([]string{"synchronize", "update"}, m.Spec.Action)
}

// pushedBySomebodyElse says that the commit was pushed by another account than the author of the
// pull request, which is whose work was approved; "" if the author has pushed it. A service that
// signs nothing is asked who has.
func (m *matter) pushedBySomebodyElse(ctx context.Context) (why string, err error) {
	told, err := m.people.name(ctx, rules.Actor)
	if err != nil {
		return "", err
	}
	who, err := m.sources.Access.Actor(ctx, m.Spec, told)
	switch {
	case err != nil:
		return "", fmt.Errorf("asking who has pushed %s: %w", m.Spec.SHA, err)
	case who == "":
		return "the Git service does not say who has pushed this one", nil
	case !same(who, m.Spec.PullRequest.Author):
		return fmt.Sprintf("%s has pushed this one, and not the author of the pull request", who), nil
	}
	return "", nil
}

// forgets says why an approval of another commit does not count for this one, "" if it does. What
// cannot be asked because the Git service does not allow it or has it no more is forgotten; every
// other error is waited for.
func (m *matter) forgets(ctx context.Context, given *v1alpha1.Approval) (why string, err error) {
	if why = approval.Changed(given, m.Spec); why != "" {
		return why, nil
	}
	may, err := m.mayApprove(ctx, given.By)
	switch f := fault.Of(err); {
	case f != nil && f.Reason == fault.ReasonPermissionMissing:
		return "whether " + given.By + " may still approve it cannot be asked: " + f.Message, nil
	case err != nil:
		return "", err
	case !may:
		return given.By + " may not approve it any more", nil
	}
	different, err := m.sources.History.Differ(
		ctx,
		given.SHA,
		m.Spec.SHA,
		pipelinesascode.Definitions,
		owners.File,
		owners.AliasesFile,
	)
	switch {
	case fault.Is(err, fault.Invalid):
		return "what has been changed since cannot be told: " + fault.Of(err).Message, nil
	case err != nil:
		return "", fmt.Errorf("comparing %s with %s, which was approved: %w", m.Spec.SHA, given.SHA, err)
	case len(different) > 0:
		return "this one has another " + strings.Join(different, " and another "), nil
	}
	return "", nil
}

// mayApprove reports whether somebody could approve a commit of the pull request now.
func (m *matter) mayApprove(ctx context.Context, who string) (bool, error) {
	in := m.accessInput()
	in.Comment, in.Command, in.Own = true, rules.OkToTest, same(who, m.Spec.PullRequest.Author)
	in.Label, in.Approved, in.Known = false, true, map[rules.Question]bool{}
	approver := &lookups{
		Desk:    m.Desk,
		spec:    m.Spec,
		names:   map[rules.Person]string{rules.Commenter: who},
		answers: m.people.answers,
		known:   in.Known,
	}
	decision, err := approver.answered(ctx, in, rules.Commenter)
	return decision.Verdict == rules.Allowed, err
}

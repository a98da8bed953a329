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

// With remember-ok-to-test, an approval of one commit also counts for what the author of the pull
// request pushes later (S22). Each such commit is compared with the commit that a user has
// approved, never with one that ran because of that approval: so many small steps cannot lead
// further than one. The event of the push decides it. Nothing is stored except the recorded events.

// applyRemembered decides about a commit without an approval of its own: it runs if an approval of
// another commit counts for it.
func (ev *evaluation) applyRemembered(
	ctx context.Context, decision rules.Result, recorded []history.Record,
) (rules.Result, error) {
	if !ev.config.RememberApprovals || decision.Verdict == rules.Allowed {
		return decision, nil
	}
	given, forgotten := approval.Given(recorded)
	if given == nil {
		return decision, nil
	}
	known := approval.Remembered(recorded, ev.Spec.SHA)
	if !known && !ev.wasPushed() { // the event of the push says who pushed it
		return decision, nil
	}
	why, err := "", error(nil)
	if !known {
		why, err = ev.pushedByAnother(ctx)
	}
	if err != nil {
		return rules.Result{}, err
	}
	if why != "" {
		decision.Why += fmt.Sprintf(" The approval by %s of commit %s does not count: %s.", given.By, given.SHA, why)
		return decision, nil
	}
	why = "that is so since commit " + forgotten
	if forgotten == "" {
		why, err = ev.whyForgotten(ctx, given)
	}
	if err != nil {
		return rules.Result{}, err
	}
	if why != "" {
		ev.Forgotten = true
		decision.Why += fmt.Sprintf(" The approval by %s of commit %s no longer counts: %s.", given.By, given.SHA, why)
		return decision, nil
	}
	ev.Approval = given
	return rules.Result{Verdict: rules.Allowed}, nil
}

// wasPushed reports whether the event is a push to the pull request's branch.
func (ev *evaluation) wasPushed() bool {
	return ev.Spec.Comment == nil && ev.Spec.Before != "" &&
		slices.Contains([]string{"synchronize", "update"}, ev.Spec.Action)
}

// pushedByAnother returns why the commit does not count as the work of the pull request's author,
// which is what was approved; "" if the author pushed it. A service that does not sign its
// deliveries is asked who did.
func (ev *evaluation) pushedByAnother(ctx context.Context) (why string, err error) {
	reported, err := ev.lookups.name(ctx, rules.Actor)
	if err != nil {
		return "", err
	}
	who, err := ev.sources.Access.Actor(ctx, ev.Spec, reported)
	switch {
	case err != nil:
		return "", fmt.Errorf("asking who has pushed %s: %w", ev.Spec.SHA, err)
	case who == "":
		return "the Git service does not say who pushed this one", nil
	case !same(who, ev.Spec.PullRequest.Author):
		return fmt.Sprintf("%s pushed this one, not the author of the pull request", who), nil
	}
	return "", nil
}

// whyForgotten returns why an approval of another commit does not count for this one, "" if it
// does. The approval is forgotten if the comparison is impossible, because the Git service does not
// allow it or no longer has the commit. Every other error is retried.
func (ev *evaluation) whyForgotten(ctx context.Context, given *v1alpha1.Approval) (why string, err error) {
	if why = approval.Changed(given, ev.Spec); why != "" {
		return why, nil
	}
	may, err := ev.mayApprove(ctx, given.By)
	switch f := fault.Of(err); {
	case f != nil && f.Reason == fault.ReasonPermissionMissing:
		return "whether " + given.By + " may still approve it cannot be found out: " + f.Message, nil
	case err != nil:
		return "", err
	case !may:
		return given.By + " may no longer approve it", nil
	}
	different, err := ev.sources.History.Differ(ctx, given.SHA, ev.Spec.SHA, pipelinesascode.Definitions, owners.File,
		owners.AliasesFile)
	switch {
	case fault.Is(err, fault.Invalid):
		return "what has changed since cannot be found out: " + fault.Of(err).Message, nil
	case err != nil:
		return "", fmt.Errorf("comparing %s with %s, which was approved: %w", ev.Spec.SHA, given.SHA, err)
	case len(different) > 0:
		return "this one has a different " + strings.Join(different, " and a different "), nil
	}
	return "", nil
}

// mayApprove reports whether a user could approve a commit of the pull request now.
func (ev *evaluation) mayApprove(ctx context.Context, who string) (bool, error) {
	in := ev.accessInput()
	in.Comment, in.Command, in.Own = true, rules.OkToTest, same(who, ev.Spec.PullRequest.Author)
	in.Label, in.Approved, in.Known = false, true, map[rules.Question]bool{}
	approver := &lookups{
		Decider: ev.Decider,
		spec:    ev.Spec,
		names:   map[rules.Person]string{rules.Commenter: who},
		answers: ev.lookups.answers,
		known:   in.Known,
	}
	decision, err := approver.decide(ctx, in, rules.Commenter)
	return decision.Verdict == rules.Allowed, err
}

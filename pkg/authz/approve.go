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

// approve decides about an event that depends on an approval. Either the rules do not allow it, and
// would if its commit were approved; or it is on a pull request to which untrusted users can push.
func (ev *evaluation) approve(ctx context.Context, decision rules.Result) (rules.Result, error) {
	if decision.Verdict != rules.Allowed {
		would, err := ev.wouldBeAllowed(ctx)
		if err != nil || !would {
			return decision, err
		}
	}
	ev.MayCommand = true
	recorded, err := ev.sources.Recorded(ctx)
	if err != nil {
		return rules.Result{}, err
	}
	ev.EndsPending = approval.Waits(recorded, ev.Spec.SHA)
	names := ev.Command != nil && ev.Command.SHA != ""
	if standing := approval.Standing(recorded, ev.Spec); standing != nil && !names {
		ev.Approval = standing
		return rules.Result{Verdict: rules.Allowed}, nil
	}
	if decision.Verdict != rules.Allowed && !ev.startsRuns() {
		return ev.applyRemembered(ctx, decision, recorded)
	}
	if end, ends := ev.cannotApprove(decision, recorded); ends {
		return end, nil
	}
	heads, err := ev.heads(ctx, recorded)
	if err != nil {
		return rules.Result{}, err
	}
	return ev.approveHead(decision, heads), nil
}

// cannotApprove decides about an event that cannot approve its commit itself. ends is false for a
// command or remark that may run its commit if that is the approved head.
func (ev *evaluation) cannotApprove(decision rules.Result, recorded []history.Record) (end rules.Result, ends bool) {
	allowed := decision.Verdict == rules.Allowed
	switch {
	case ev.startsRuns() && !allowed && same(ev.Spec.Sender, ev.Spec.PullRequest.Author): // S24, whatever the command
		return rules.Result{Why: decision.Why + " Another user than its author has to approve the commit."}, true
	case ev.startsRuns():
		return decision, false
	case ev.isRemark() && allowed && ev.EndsPending:
		return rules.Result{Why: "The commit waits for approval. A comment without a command does not approve it."}, true
	case ev.isOfOldHead() && allowed && approval.PushedUnapproved(recorded, ev.Spec.SHA):
		return rules.Result{
			Why: "Another user than its author has pushed the commit, and it is not approved yet.",
		}, true
	}
	return decision, !ev.isRemark() || !allowed
}

// heads returns the heads that the pull request has had. Where deliveries are not signed, the Git
// service's own list is used, because a delivery could invent them.
func (ev *evaluation) heads(ctx context.Context, recorded []history.Record) (heads []approval.Head, err error) {
	versions, err := ev.sources.History.Versions(ctx, ev.Spec)
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

// approveHead lets a comment run the commit that was the head when the comment was written (S21).
// That also holds for the pull request of a user with write access, because users without it may
// push to the fork that it comes from. Only users with write access push to a branch of the
// repository itself: if nothing is recorded of such a pull request, its head may run.
func (ev *evaluation) approveHead(decision rules.Result, heads []approval.Head) rules.Result {
	trusted := decision.Verdict == rules.Allowed
	if trusted && len(heads) == 0 && SameRepository(ev.Spec) {
		return ev.unlessMisnamed(decision)
	}
	asked := ev.givenCommand()
	if asked.SHA == "" && ev.config.RequireApprovedSHA && (!trusted || asked.Kind == command.OkToTest) {
		return rules.Result{
			Why: fmt.Sprintf(
				"An approval has to name its commit here (require-ok-to-test-sha). The head of the pull request is %s: "+
					"after reading it write /ok-to-test %s.",
				ev.Spec.SHA,
				ev.Spec.SHA,
			),
		}
	}
	comment := approval.Comment{Received: ev.Spec.ReceivedAt.Time, SHA: asked.SHA}
	if at := ev.Spec.HappenedAt; at != nil {
		comment.At = at.Time
	}
	if approved, why := approval.Decide(comment, ev.Spec.SHA, heads); !approved {
		return rules.Result{Why: why}
	}
	if !trusted || ev.EndsPending {
		ev.Approval = &v1alpha1.Approval{
			By: ev.Spec.Sender, Event: ev.Name, BaseRef: ev.Spec.BaseRef, HeadProjectID: ev.Spec.PullRequest.HeadProjectID,
		}
	}
	return rules.Result{Verdict: rules.Allowed}
}

// givenCommand returns the command of a comment, the zero value if it has none.
func (ev *evaluation) givenCommand() command.Command {
	if ev.Command == nil {
		return command.Command{}
	}
	return *ev.Command
}

// unlessMisnamed returns the decision to allow, unless the command names a commit that is not the
// head. Then its author meant another commit.
func (ev *evaluation) unlessMisnamed(allowed rules.Result) rules.Result {
	if ev.Command == nil || ev.Command.SHA == "" {
		return allowed
	}
	if why := approval.WrongCommit(ev.Command.SHA, ev.Spec.SHA); why != "" {
		return rules.Result{Why: why}
	}
	return allowed
}

// wouldBeAllowed reports whether only an approval of the commit is missing.
func (ev *evaluation) wouldBeAllowed(ctx context.Context) (bool, error) {
	if ev.Spec.PullRequest == nil {
		return false, nil
	}
	ev.Approval = &v1alpha1.Approval{}
	decision, err := ev.decide(ctx)
	ev.Approval = nil
	return decision.Verdict == rules.Allowed, err
}

// startsRuns reports whether the event is a command that starts runs of a pull request.
func (ev *evaluation) startsRuns() bool {
	return ev.Command != nil && ev.Command.Kind != command.Cancel && ev.Command.Kind != command.Why &&
		ev.Spec.PullRequest != nil
}

// dependsOnApproval reports whether a decision to allow depends on what is recorded of the commit:
// an approved commit runs confined again (S23), and a commit that others have pushed may wait for
// approval.
func (ev *evaluation) dependsOnApproval() bool {
	return (ev.startsRuns() || ev.isRemark() || ev.Rerun || ev.isOfOldHead()) && ev.othersMayPush()
}

// isOfOldHead reports whether the event does not change the head of its pull request: a label, a
// reopening, or the end of a draft. Its author need not have read what others have pushed.
func (ev *evaluation) isOfOldHead() bool {
	return ev.Spec.PullRequest != nil && ev.Spec.Comment == nil && !ev.Rerun && !ev.wasPushed() && !ev.justOpened()
}

// justOpened reports whether the event opens a new pull request.
func (ev *evaluation) justOpened() bool {
	return (ev.Spec.Action == "opened" || ev.Spec.Action == "open") && !v1alpha1.Reopened(ev.Name)
}

// othersMayPush reports whether users who may not start its pipelines can push to the branch of a
// pull request: it is in another repository, or a policy says who may start them.
func (ev *evaluation) othersMayPush() bool {
	settings := ev.repository.Spec.Settings
	return ev.Spec.PullRequest != nil && (!SameRepository(ev.Spec) || settings != nil && settings.Policy != nil)
}

// noteWait sets EndsPending if the commit of an allowed pull request may have a check that waits
// for approval. A pull request that was just opened has none. On a branch of the repository itself
// only an earlier policy can have made it wait, so a commit that was just pushed there is not
// looked up.
func (ev *evaluation) noteWait(ctx context.Context) error {
	pushedByOwn := ev.wasPushed() && !ev.othersMayPush()
	if ev.Spec.PullRequest == nil || ev.Spec.Comment != nil || ev.Rerun || ev.justOpened() || pushedByOwn {
		return nil
	}
	recorded, err := ev.sources.Recorded(ctx)
	ev.EndsPending = approval.Waits(recorded, ev.Spec.SHA)
	return err
}

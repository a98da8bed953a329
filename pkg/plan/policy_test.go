// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// underPolicy is a comment on a pull request from a branch of the repository itself. Its Repository
// has the policy of docs/commands.md.
func underPolicy(sender, author string) plan.Input {
	in := saying(sender)
	in.Event.Spec.PullRequest.HeadProjectID, in.Event.Spec.PullRequest.Author = in.Event.Spec.Project.ID, author
	in.Repository.Spec.Settings = &pacv1alpha1.Settings{
		Policy: &pacv1alpha1.Policy{PullRequest: []string{"maintainers"}, OkToTest: []string{"maintainers", "releasers"}},
	}
	return in
}

// ofPolicy is an env with the teams of that policy.
func ofPolicy(said string, known ...history.Record) *env {
	for _, r := range known {
		r.Event.Spec.PullRequest.HeadProjectID = r.Event.Spec.Project.ID
	}
	return &env{files: []git.File{pulled("a")}, said: said, moved: sha, records: known,
		teams: map[string]string{"maintainers": "ann lea", "releasers": "rob"}}
}

// With a policy, a branch of the repository itself may wait for approval too: a user who is not
// listed has pushed to a listed user's pull request. The approval ends the pending check and is
// recorded.
func TestApprovalUnderPolicyEndsPendingCheck(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"/ok-to-test", "/test"} {
		made := ofPolicy(said, onRecord("pull-1", sha, 1, v1alpha1.DispositionPending)).make(t, underPolicy("lea", "ann"))
		if len(made.Runs) != 1 || !made.EndsPending || made.Approval == nil || made.Approval.By != "lea" {
			t.Errorf("%s: %d runs, ends what waits: %t, approved by %+v", said, len(made.Runs), made.EndsPending, made.Approval)
		}
	}
}

// S21: what a user who is not listed pushes after the comment is not approved by it.
func TestPushAfterCommandUnderPolicyDoesNotRun(t *testing.T) {
	t.Parallel()
	w := ofPolicy("/test", onRecord("pull-1", sha, 1, v1alpha1.DispositionRuns),
		onRecord("pull-2", laterSHA, 7, v1alpha1.DispositionPending))
	w.moved = laterSHA
	if made := w.make(t, underPolicy("lea", "ann")); len(made.Runs) != 0 {
		t.Errorf("%d runs of %s, which came after the comment and waits for approval", len(made.Runs), made.HeadSHA)
	}
}

// S24: a user who may approve cannot approve the own pull request, with any command.
func TestAuthorCannotApproveByAnotherCommand(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"/ok-to-test", "/test", "/retest", "/test a"} {
		made := ofPolicy(said, onRecord("pull-1", sha, 1, v1alpha1.DispositionPending)).make(t, underPolicy("rob", "rob"))
		if len(made.Runs) != 0 || made.Approval != nil {
			t.Errorf("%s: %d runs, approved by %+v, who is the author", said, len(made.Runs), made.Approval)
		}
	}
}

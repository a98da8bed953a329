// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// commentOnCommit returns the delivery of a comment that a user has just written on a commit.
func (env *environment) commentOnCommit(sha, user, body string) delivery {
	if g, isGitLab := env.git.(*onGitLab); isGitLab {
		g.AddUser(user)
		return g.NoteDelivery(g.AddCommitNote(projectName, sha, user, body))
	}
	return env.forge.CommitCommentDelivery(forge.CommentEvent{
		Repo: repoName, ID: env.forge.CommitComment(repoName, sha, user, body),
	})
}

// Commands in comments on pushed commits. All rows run in one environment for each service.
func TestCommandsOnCommit(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.git.grant("member", "write")
		sha := env.git.commit("main", forge.Change{Author: "member", Message: "a change [skip ci]", Files: map[string]string{
			".tekton/build.yaml":  strings.Replace(pipeline("build", "push"), "[main]", "[main, release]", 1),
			".tekton/manual.yaml": pipeline("manual", "none"), ".tekton/long.yaml": pipeline("long", "none", held),
		}})
		env.deliver(env.newDelivery(), http.StatusAccepted)
		env.awaitAllSettled(soon)
		env.git.point("release", sha)
		env.git.point("refs/tags/v1", sha)
		for _, row := range []struct{ user, comment, ran, reason, says, ref string }{
			{"member", "please\n\n/test", "build test-all-comment ", "Selected", "", "main"},
			{"member", "/retest", "", "NothingToRetest", "a command that names one starts it", "main"},
			{"member", "/retest branch:release", "build retest-all-comment ", "Selected", "", "release"},
			{"member", "/retest build branch:main", "build retest-comment ", "Selected", "", "main"},
			{"member", "/test manual tag:v1", "manual test-comment ", "Selected", "", "tags/v1"},
			{"member", "/test biuld", "", "UnknownName", "(All: build, long, manual)", "main"},
			{"member", "/test branch:gone", "", "RefNotFound", "has no refs/heads/gone", ""},
			{"member", "/ok-to-test", "", "NoCommand", "only if it has a command", ""},
			{"eve", "/test", "", "NotApproved", "no write access", ""},
			{"eve", "/cancel", "", "NotApproved", "no write access", ""},
		} {
			event := env.deliverAndSettle(env.commentOnCommit(sha, row.user, row.comment))
			what := row.user + ": " + row.comment
			equal(t, what+": the runs", env.describeRuns(event), row.ran)
			equal(t, what+": the ref", event.Status.Ref, cmp.Or(row.ref, event.Status.Ref))
			requirePlan(t, what, event, v1alpha1.Plan{Reason: row.reason, Message: row.says, HeadSHA: sha})
		}
		env.awaitCheck(sha, checkName("build"), "success", soon)
		env.requireCancelOnOneBranch(sha)
		again := env.commentOnCommit(sha, "member", "/test manual")
		env.deliver(again, http.StatusAccepted)
		env.deliver(again, http.StatusAccepted)
		env.awaitAllSettled(soon)
		env.requireOneRun(again)
		head := env.git.commit("main", forge.Change{Author: "member", Message: "more", Files: map[string]string{"x": "y"}})
		for _, comment := range []string{"/test", "/retest build", "/cancel"} {
			event := env.deliverAndSettle(env.commentOnCommit(sha, "member", comment))
			what := comment + " once main has moved"
			requirePlan(t, what, event, v1alpha1.Plan{Reason: "NotTheHead", Message: head, HeadSHA: event.Status.Plan.HeadSHA})
			equal(t, what+": the number of runs", len(event.Status.Runs), 0)
			equal(t, what+": the disposition", event.Status.Disposition, v1alpha1.DispositionIgnored)
		}
		env.requireOnlyStarted("build", "build", "build", "long", "manual", "manual")
		env.requireNoFailure(sha)
	})
}

// requireCancelOnOneBranch starts the pipeline long on main, which a command for another branch at
// the same commit does not cancel.
func (env *environment) requireCancelOnOneBranch(sha string) {
	env.t.Helper()
	env.deliver(env.commentOnCommit(sha, "member", "/test long"), http.StatusAccepted)
	env.awaitCheck(sha, checkName("long"), "in_progress", soon)
	for _, comment := range []string{"/cancel branch:release", "/cancel build"} {
		if event := env.deliverAndSettle(env.commentOnCommit(sha, "member",
			comment)); event.Status.Disposition != v1alpha1.DispositionCancels {
			env.t.Errorf("%q is %s: %+v", comment, event.Status.Disposition, event.Status.Plan)
		}
		if check, _ := env.currentCheck(sha, checkName("long")); check.Status != "in_progress" {
			env.t.Errorf("%q: the run is %s %s", comment, check.Status, check.Conclusion)
		}
	}
	env.deliverAndSettle(env.commentOnCommit(sha, "member", "/cancel long"))
	if check := env.awaitCheck(sha, checkName("long"), "cancelled", soon); !check.Tells("member requested it") {
		env.t.Errorf("the check does not say who asked: %s", check.Text)
	}
	env.awaitAllSettled(soon)
}

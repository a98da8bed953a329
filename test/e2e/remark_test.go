// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// remarks is the delivery of a comment that a user has just written on a commit.
func (w *world) remarks(sha, user, body string) delivery {
	if g, isGitLab := w.git.(*onGitLab); isGitLab {
		g.AddUser(user)
		return g.NoteDelivery(g.AddCommitNote(projectName, sha, user, body))
	}
	return w.forge.CommitCommentDelivery(forge.CommentEvent{Repo: repoName, ID: w.forge.CommitComment(repoName, sha, user, body)})
}

// remarked delivers a comment on a commit, waits until its event is over, and returns that.
func (w *world) remarked(sha, user, body string) v1alpha1.GitEvent {
	w.t.Helper()
	d := w.remarks(sha, user, body)
	w.deliver(d, http.StatusAccepted)
	return w.settledOf(d)
}

// The rows of commands on commits that were pushed, in one world for each service.
func TestCommandsOnACommit(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.git.grant("member", "write")
		sha := w.git.commit("main", forge.Change{Author: "member", Message: "a change [skip ci]", Files: map[string]string{
			".tekton/build.yaml": strings.Replace(pipeline("build", "push"), "[main]", "[main, release]", 1), ".tekton/manual.yaml": pipeline("manual", "none"), ".tekton/long.yaml": pipeline("long", "none", held),
		}})
		w.deliver(w.again(), http.StatusAccepted)
		w.settled(soon)
		w.git.point("release", sha)
		w.git.point("refs/tags/v1", sha)
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
			event := w.remarked(sha, row.user, row.comment)
			if got, plan := w.ran(event), event.Status.Plan; got != row.ran || plan.Reason != row.reason || !strings.Contains(plan.Message, row.says) || plan.HeadSHA != sha || row.ref != "" && event.Status.Ref != row.ref {
				t.Errorf("%s: %q: runs %q of %q, plan %+v, want %q of %q because of %s", row.user, row.comment, got, event.Status.Ref, plan, row.ran, row.ref, row.reason)
			}
		}
		w.checkReaches(sha, checkName("build"), "success", soon)
		w.cancelsOnOneBranch(sha)
		again := w.remarks(sha, "member", "/test manual")
		w.deliver(again, http.StatusAccepted)
		w.deliver(again, http.StatusAccepted)
		w.settled(soon)
		w.oneOf(again)
		head := w.git.commit("main", forge.Change{Author: "member", Message: "more", Files: map[string]string{"x": "y"}})
		for _, comment := range []string{"/test", "/retest build", "/cancel"} {
			event := w.remarked(sha, "member", comment)
			if plan := event.Status.Plan; plan.Reason != "NotTheHead" || !strings.Contains(plan.Message, head) || len(event.Status.Runs) != 0 || event.Status.Disposition != v1alpha1.DispositionIgnored {
				t.Errorf("%q once main has moved: %+v", comment, event.Status)
			}
		}
		w.started("build", "build", "build", "long", "manual", "manual")
		w.neverFailed(sha)
	})
}

// cancelsOnOneBranch starts the pipeline long on main, which a command for another branch at the
// same commit leaves alone.
func (w *world) cancelsOnOneBranch(sha string) {
	w.t.Helper()
	w.deliver(w.remarks(sha, "member", "/test long"), http.StatusAccepted)
	w.checkReaches(sha, checkName("long"), "in_progress", soon)
	for _, comment := range []string{"/cancel branch:release", "/cancel build"} {
		if event := w.remarked(sha, "member", comment); event.Status.Disposition != v1alpha1.DispositionCancels {
			w.t.Errorf("%q is %s: %+v", comment, event.Status.Disposition, event.Status.Plan)
		}
		if check, _ := w.current(sha, checkName("long")); check.Status != "in_progress" {
			w.t.Errorf("%q: the run is %s %s", comment, check.Status, check.Conclusion)
		}
	}
	w.remarked(sha, "member", "/cancel long")
	if check := w.checkReaches(sha, checkName("long"), "cancelled", soon); !check.Tells("member asked for it") {
		w.t.Errorf("the check does not say who asked: %s", check.Text)
	}
	w.settled(soon)
}

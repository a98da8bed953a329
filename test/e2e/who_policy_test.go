// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// approvesByPolicy requires that who is in a team of ok_to_test approves a stranger's commit, and neither a writer nor a member of the team
// for pull requests who is in none: they are not even allowed to test it.
func (w *world) approvesByPolicy(forPulls string) {
	w.t.Helper()
	team := w.git.join("approvers", "ada")
	w.set(`{"policy":{"pull_request":["` + forPulls + `"],"ok_to_test":["` + team + `"]}}`)
	number, sha := w.forkPull("sam")
	w.pendsBecause(w.opened(number), "is in no team")
	for _, row := range [][2]string{{"writer", "/ok-to-test"}, {"lisa", "/ok-to-test " + sha}, {"writer", "/test"}} {
		unlisted := w.commands(number, row[0], row[1])
		w.deliver(unlisted, http.StatusAccepted)
		w.declines(unlisted, "The author of the comment is in no team")
	}
	w.approves(number, "ada", sha)
	if given := w.runsBySHA()[sha]; given != 1 {
		w.t.Errorf("%d PipelineRuns of the commit that a listed account has approved, want one", given)
	}
}

// S13: a policy that cannot be evaluated, because the Repository names a service that is not served, lets nobody start the run of a pull
// request: not who is in its team, and not who may write, by a pull request or a command. The condition names it. Pushes go on, and without
// the policy so do pull requests.
func TestAPolicyThatCannotBeEvaluatedDenies(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		const because = "which this version cannot evaluate"
		w.git.grant("writer", "write")
		w.git.commit("main", forge.Change{Files: map[string]string{
			".tekton/pr.yaml": pipeline("pr", "pull_request"), ".tekton/push.yaml": pipeline("push", "push"),
		}})
		team := w.git.join("releasers", "lisa")
		w.specify(`{"git_provider":{"type":"gitea"},"settings":{"policy":{"pull_request":["` + team + `"],"ok_to_test":["` + team + `"]}}}`)
		w.conditioned(pacv1alpha1.RepositorySettings, "False NotEvaluated", "settings.policy")
		w.pendsFor("lisa", because)
		sha := w.git.commit("topic", forge.Change{Files: map[string]string{"a": "b"}, Author: "writer"})
		number := w.git.open("", "topic", "writer")
		w.pendsBecause(w.opened(number), because)
		for _, who := range []string{"writer", "lisa"} {
			asked := w.commands(number, who, "/test")
			w.deliver(asked, http.StatusAccepted)
			w.declines(asked, because)
		}
		if runs := w.runs(); len(runs) != 0 {
			t.Errorf("%d PipelineRuns, want none", len(runs))
		}
		pushed := w.git.commit("main", forge.Change{Files: map[string]string{"c": "d"}})
		w.deliver(w.git.pushed("refs/heads/main"), http.StatusAccepted)
		w.checkReaches(pushed, checkName("push"), "success", soon)

		w.set(`{"policy":null}`)
		w.deliver(w.reopens(number, "writer"), http.StatusAccepted)
		w.checkReaches(sha, checkName("pr"), "success", soon)
	})
}

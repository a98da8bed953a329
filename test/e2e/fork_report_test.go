// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// E10: when a fork accepts no status of its commit (GitLab answers 403, or 404 for a hidden fork),
// one comment reports the status and is edited in place. There is only one comment even when the
// answer to its creation is lost, or the process is restarted. On GitHub check runs belong to the
// repository itself, and nothing is commented.
func TestForkIsReportedInOneComment(t *testing.T) {
	t.Parallel()
	for name, hidden := range map[string]bool{"refuses": false, "hidden": true} {
		t.Run(name, func(t *testing.T) {
			onlyInTestAllUnless(t, !hidden)
			forEachService(t, setup{receivers: 1, controllers: 1},
				func(t *testing.T, env *environment) { reportsForkOnce(t, env, hidden) })
		})
	}
}

func reportsForkOnce(t *testing.T, env *environment, hidden bool) {
	env.git.grant("writer", "write")
	env.git.commit("main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request", held)}})
	number, sha := env.openForkPull("writer")
	env.git.closeFork("writer", hidden)
	lost := env.git.inject(writeComment, forge.Fault{Count: 1, Do: forge.ApplyThenAnswer(http.StatusBadGateway)})
	env.deliver(env.opened(number), http.StatusAccepted)
	started := env.awaitCheck(sha, checkName("pr"), "in_progress", soon)
	env.restart(env.controller())
	env.releaseRuns(env.awaitRunsCreated(sha))
	ended := env.awaitCheck(sha, checkName("pr"), "success", afterFault)
	env.awaitSettled(sha, afterFault)
	env.requireOneCheck(sha, checkName("pr"))
	env.requireNoFailure(sha)
	if ended.ID != started.ID {
		t.Errorf("%s tells of the end and %s of the start, want one place", ended.ID, started.ID)
	}
	isNote, notes := strings.HasPrefix(ended.ID, "note/"), env.countOperations(writeComment)
	if want := env.git.kind() == gitLab; isNote != want || want && (lost.Hits() != 1 || notes != 1) ||
		!want && notes != 0 {
		t.Errorf("the check is %s and %d comments were written, %d of them without an answer", ended.ID, notes, lost.Hits())
	}
}

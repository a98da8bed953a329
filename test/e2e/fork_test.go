// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// E10: where a fork takes no status of its commit (GitLab: it refuses with 403, or is hidden and
// answers 404), one note tells of it, updated in place: also when the answer to its creation is
// lost, and by a process that was started anew. On GitHub check runs are in the repository itself,
// and nothing is commented.
func TestE10AForkIsToldOfInOnePlace(t *testing.T) {
	t.Parallel()
	for name, hidden := range map[string]bool{"refuses": false, "hidden": true} {
		t.Run(name, func(t *testing.T) {
			onlyInTestAllUnless(t, !hidden)
			t.Parallel()
			forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) { tellsOfAForkOnce(t, w, hidden) })
		})
	}
}

func tellsOfAForkOnce(t *testing.T, w *world, hidden bool) {
	w.git.grant("writer", "write")
	w.git.commit("main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request", held)}})
	number, sha := w.forkPull("writer")
	w.git.closeFork("writer", hidden)
	lost := w.git.inject(writeComment, forge.Fault{Count: 1, Do: forge.ApplyThenAnswer(http.StatusBadGateway)})
	w.deliver(w.opened(number), http.StatusAccepted)
	started := w.checkReaches(sha, checkName("pr"), "in_progress", soon)
	w.restart(w.controller())
	w.release(w.created(sha))
	ended := w.checkReaches(sha, checkName("pr"), "success", afterFault)
	w.settles(sha, afterFault)
	w.oneCheck(sha, checkName("pr"))
	w.neverFailed(sha)
	if ended.ID != started.ID {
		t.Errorf("%s tells of the end and %s of the start, want one place", ended.ID, started.ID)
	}
	isNote, notes := strings.HasPrefix(ended.ID, "note/"), w.count(writeComment)
	if want := w.git.kind() == gitLab; isNote != want || want && (lost.Hits() != 1 || notes != 1) || !want && notes != 0 {
		t.Errorf("the check is %s and %d comments were written, %d of them without an answer", ended.ID, notes, lost.Hits())
	}
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// E10: where a fork takes no status of its commit (GitLab: it refuses with 403, or is hidden and answers 404), one note
// tells of it, updated in place: also when the answer to its creation is lost, and by a process that was started anew. On
// GitHub check runs are in the repository itself, and nothing is commented.
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

// B8b: while a fork on GitLab cannot be asked (5xx), or is absent only once, nothing is written below its merge request:
// its status appears when it can. A fork that is absent each of three times is told of in exactly one note.
func TestB8bANoteNeedsAFork(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	w := newWorld(t, setup{service: gitLab, receivers: 1, controllers: 1})
	w.claimed()
	g := w.git.(*onGitLab)
	for _, test := range []struct {
		name  string
		fault forge.Fault
		again int // calls to wait for
		gone  bool
	}{
		{"is-down", forge.Fault{Do: forge.ServerError502HTML()}, 4, false},
		{"is-absent-once", forge.Fault{Count: 1, Do: gitlab.NotFound404()}, 1, false},
		{"is-gone", forge.Fault{Count: 1, Do: gitlab.NotFound404()}, 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := w.in(t)
			w.git.grant(test.name, "write")
			number, sha := w.forkPull(test.name)
			fork := fmt.Sprintf("/projects/%d", g.forks[test.name].ID)
			test.fault.Route = gitlab.RouteStatusList
			test.fault.Match = func(r *http.Request) bool { return strings.Contains(r.URL.Path, fork+"/") }
			fault := g.Inject(test.fault)
			if test.gone {
				w.git.closeFork(test.name, true)
			}
			before := w.count(writeComment)
			w.deliver(w.opened(number), http.StatusAccepted)
			w.hit(fault, test.again)
			if !test.gone && test.fault.Count == 0 {
				w.waits(sha, "report")
			}
			fault.Remove()
			check := w.checkReaches(sha, checkName("pr"), "success", afterFault)
			w.settles(sha, afterFault)
			w.oneCheck(sha, checkName("pr"))
			notes := w.count(writeComment) - before
			if isNote := strings.HasPrefix(check.ID, "note/"); isNote != test.gone || (notes == 1) != test.gone || notes > 1 {
				t.Errorf("the check is %s and %d notes were written, want a note: %t", check.ID, notes, test.gone)
			}
			asked := 0
			for _, request := range w.git.log().requests {
				if request.Route == gitlab.RouteProject && strings.HasSuffix(request.Path, fork) {
					asked++
				}
			}
			if test.gone && asked < 3 {
				t.Errorf("the fork was asked for %d times before it was taken for absent, want 3", asked)
			}
		})
	}
	w.invariants()
}

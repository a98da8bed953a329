// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/approval"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// approves has somebody approve the head of a pull request, and waits until that runs.
func (w *world) approves(number int, user, sha string) {
	w.t.Helper()
	w.nextSecond() // records of one second have no order, and what is forgotten in that of the approval stays forgotten
	w.deliver(w.commands(number, user, "/ok-to-test "+sha), http.StatusAccepted)
	w.checkReaches(sha, checkName("pr"), "success", soon)
}

// forgets delivers a push, which must wait because the approval is forgotten.
func (w *world) forgets(pushed delivery, why string) {
	w.t.Helper()
	w.pendsBecause(pushed, why)
	if reason := planOf(w.recordOf(pushed)).Reason; reason != approval.ReasonForgotten {
		w.t.Errorf("the push that %s is planned as %s", why, reason)
	}
}

// remembers delivers a push, which must run by the approval of another commit.
func (w *world) remembers(pushed delivery, sha, by, approved string) {
	w.t.Helper()
	w.deliver(pushed, http.StatusAccepted)
	w.ranByMemory(pushed, sha, by, approved)
}

func (w *world) ranByMemory(pushed delivery, sha, by, approved string) {
	w.t.Helper()
	w.checkReaches(sha, checkName("pr"), "success", afterFault)
	event := w.recordOf(pushed)
	if given := planOf(event).Approval; given == nil || given.By != by || given.SHA != approved || len(event.Status.Runs) != 1 {
		w.t.Fatalf("%s runs by %+v, want %s's approval of %s", sha, given, by, approved)
	}
	if note := event.Status.Runs[0].Note; !strings.Contains(note, by+" has approved commit "+approved+", which is remembered for commit "+sha) {
		w.t.Errorf("the run is told with %q", note)
	}
}

// S22: with remember-ok-to-test what the author of an approved pull request pushes runs, each time compared with the commit that was approved,
// until definitions are changed or the approver may not approve any more. What others push waits, and so does what cannot be compared yet.
func TestS22AnApprovalIsRememberedUntilSomethingChanges(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	on := [][3]string{{"plumbline", "remember-ok-to-test", "true"}}
	forEachService(t, setup{receivers: 1, controllers: 1, config: on}, func(t *testing.T, w *world) {
		w.git.grant("member", "write")
		w.git.grant("other", "write")
		number, first := w.forkPull("stranger")
		w.deliver(w.opened(number), http.StatusAccepted)
		w.checkReaches(first, application, "queued", soon)
		w.approves(number, "member", first)

		second, pushed := w.changes("stranger", number, "stranger", forge.Change{Files: map[string]string{"README": "2"}})
		w.remembers(pushed, second, "member", first)
		w.repositoryTold("ApprovalRemembered", "member has approved commit "+first+", which is remembered for commit "+second)
		third, pushed := w.changes("stranger", number, "stranger", forge.Change{Files: map[string]string{"README": "3"}, Parent: first}) // by force
		slow := w.git.inject(readDirectory, forge.Fault{Do: forge.ServerError502HTML()})
		w.deliver(pushed, http.StatusAccepted)
		if wait := w.waits(third, "plan"); !strings.Contains(wait.Message, "comparing "+third+" with "+first) {
			t.Errorf("it waits because %q", wait.Message)
		}
		if got := w.runsBySHA(); got[third] != 0 {
			t.Errorf("PipelineRuns by commit: %v, want none of %s before it could be compared", got, third)
		}
		slow.Remove()
		w.ranByMemory(pushed, third, "member", first)

		_, pushed = w.pushTo("stranger", number, "eve", "4")
		w.pendsBecause(pushed, "eve has pushed")
		fifth, pushed := w.changes("stranger", number, "stranger", forge.Change{Files: map[string]string{"README": "5"}})
		w.remembers(pushed, fifth, "member", first)

		w.git.grant("member", "read")
		sixth, pushed := w.changes("stranger", number, "stranger", forge.Change{Files: map[string]string{"README": "6"}})
		w.forgets(pushed, "member may not approve it any more")
		seventh, pushed := w.changes("stranger", number, "stranger", forge.Change{Files: map[string]string{"README": "7"}})
		w.forgets(pushed, "since commit "+sixth)
		w.approves(number, "other", seventh)

		eighth, pushed := w.changes("stranger", number, "stranger", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("other", "pull_request")}})
		w.forgets(pushed, "another .tekton")
		ninth, pushed := w.changes("stranger", number, "stranger", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request")}})
		w.forgets(pushed, "since commit "+eighth)
		if got := w.runsBySHA(); got[sixth]+got[eighth]+got[ninth] != 0 || got[second] != 1 || got[third] != 1 || got[fifth] != 1 {
			t.Errorf("PipelineRuns by commit: %v", got)
		}
	})
}

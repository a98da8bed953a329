// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/authz/approval"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// remembers pushes a file as the author, which must run by member's approval of another commit.
func (w *world) remembers(number int, approved, text string) {
	w.t.Helper()
	sha, pushed := w.pushTo("stranger", number, "stranger", text)
	w.deliver(pushed, http.StatusAccepted)
	w.checkReaches(sha, checkName("pr"), "success", soon)
	event := w.recordOf(pushed)
	if given := planOf(event).Approval; given == nil || given.By != "member" || given.SHA != approved || len(event.Status.Runs) != 1 {
		w.t.Fatalf("%s runs by %+v, want member's approval of %s", sha, given, approved)
	}
	says := "member has approved commit " + approved + ", which is remembered for commit " + sha
	if note := event.Status.Runs[0].Note; !strings.Contains(note, says) {
		w.t.Errorf("the run is told with %q", note)
	}
	w.repositoryTold("ApprovalRemembered", says)
}

// S22: with remember-ok-to-test what the author of an approved pull request pushes runs, each time
// compared with the commit that was approved, until definitions are changed. What others push
// waits.
func TestS22AnApprovalIsRememberedUntilSomethingChanges(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	on := [][3]string{{"plumbline", "remember-ok-to-test", "true"}}
	forEachService(t, setup{receivers: 1, controllers: 1, config: on}, func(t *testing.T, w *world) {
		w.git.grant("member", "write")
		number, first := w.forkPull("stranger")
		w.deliver(w.opened(number), http.StatusAccepted)
		w.checkReaches(first, application, "queued", soon)
		w.nextSecond() // records of one second have no order
		w.deliver(w.commands(number, "member", "/ok-to-test "+first), http.StatusAccepted)
		w.checkReaches(first, checkName("pr"), "success", soon)

		w.remembers(number, first, "2")
		_, pushed := w.pushTo("stranger", number, "eve", "3")
		w.pendsBecause(pushed, "eve pushed")
		w.remembers(number, first, "4")

		fifth, pushed := w.changes("stranger", number, "stranger", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("other", "pull_request")}})
		w.pendsBecause(pushed, "a different .tekton")
		_, pushed = w.changes("stranger", number, "stranger", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request")}})
		w.pendsBecause(pushed, "since commit "+fifth)
		if reason := planOf(w.recordOf(pushed)).Reason; reason != approval.ReasonForgotten || len(w.runs()) != 3 {
			t.Errorf("the last push is planned as %s, and there are %d PipelineRuns, want three", reason, len(w.runs()))
		}
	})
}

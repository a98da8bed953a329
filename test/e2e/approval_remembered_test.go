// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/authz/approval"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// requireRemembered pushes a file as the author, which must run by member's approval of another
// commit.
func (env *environment) requireRemembered(number int, approved, text string) {
	env.t.Helper()
	sha, pushed := env.pushText("stranger", number, "stranger", text)
	env.deliver(pushed, http.StatusAccepted)
	env.awaitCheck(sha, checkName("pr"), "success", soon)
	event := env.recordOf(pushed)
	if given := planOf(event).Approval; given == nil || given.By != "member" || given.SHA != approved ||
		len(event.Status.Runs) != 1 {
		env.t.Fatalf("%s runs by %+v, want member's approval of %s", sha, given, approved)
	}
	says := "member has approved commit " + approved + ", which is remembered for commit " + sha
	if note := event.Status.Runs[0].Note; !strings.Contains(note, says) {
		env.t.Errorf("the run's check has the note %q", note)
	}
	env.awaitRepositoryEvent("ApprovalRemembered", says)
}

// S22: with remember-ok-to-test, later pushes of the author of an approved pull request run until
// definitions change. Each push is compared with the approved commit. Pushes of other users wait.
func TestApprovalIsRememberedUntilDefinitionsChange(t *testing.T) {
	onlyInTestAll(t)
	on := [][3]string{{"plumbline", "remember-ok-to-test", "true"}}
	forEachService(t, setup{receivers: 1, controllers: 1, config: on}, func(t *testing.T, env *environment) {
		env.git.grant("member", "write")
		number, first := env.openForkPull("stranger")
		env.deliver(env.opened(number), http.StatusAccepted)
		env.awaitCheck(first, application, "queued", soon)
		env.waitForNextSecond() // records of the same second have no order
		env.deliver(env.comment(number, "member", "/ok-to-test "+first), http.StatusAccepted)
		env.awaitCheck(first, checkName("pr"), "success", soon)

		env.requireRemembered(number, first, "2")
		_, pushed := env.pushText("stranger", number, "eve", "3")
		env.requirePendingReason(pushed, "eve pushed")
		env.requireRemembered(number, first, "4")

		fifth, pushed := env.pushChange("stranger", number, "stranger",
			forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("other", "pull_request")}})
		env.requirePendingReason(pushed, "a different .tekton")
		_, pushed = env.pushChange("stranger", number, "stranger",
			forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request")}})
		env.requirePendingReason(pushed, "since commit "+fifth)
		if reason := planOf(env.recordOf(pushed)).Reason; reason != approval.ReasonForgotten || len(env.runs()) != 3 {
			t.Errorf("the last push is planned as %s, and there are %d PipelineRuns, want three", reason, len(env.runs()))
		}
	})
}

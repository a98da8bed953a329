// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// S26: /cancel ends the runs that it names, or all runs, of its own pull request that were created
// before the comment. A comment of an untrusted user cancels nothing. The author may cancel runs
// of the pull request, also without write access.
func TestCommentCancelsRuns(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.git.grant("dev", "write")
		number, sha := env.openTopicPull("topic")
		other, its := env.openTopicPull("other")
		env.deliver(env.opened(number), http.StatusAccepted)
		env.deliver(env.opened(other), http.StatusAccepted)
		labelled := env.addLabel(number, "dev", "ready")
		env.deliver(labelled, http.StatusAccepted)
		for _, running := range [][2]string{{sha, "pr"}, {sha, "label"}, {its, "pr"}} {
			env.awaitCheck(running[0], checkName(running[1]), "in_progress", soon)
		}
		if said := env.runCommand(number, "stranger", "/cancel"); said.Status.Disposition != v1alpha1.DispositionIgnored {
			t.Errorf("an untrusted user's command is %s", said.Status.Disposition)
		}
		if said := env.runCommand(number, "dev",
			"/cancel label unknown"); said.Status.Disposition != v1alpha1.DispositionCancels {
			t.Errorf("the command is %s: %+v", said.Status.Disposition, said.Status.Plan)
		}
		if check := env.awaitCheck(sha, checkName("label"), "cancelled", soon); !check.Tells("dev requested it") {
			t.Errorf("the check does not say who asked: %s", check.Text)
		}
		for _, running := range [][2]string{{sha, "pr"}, {its, "pr"}} {
			if check, _ := env.currentCheck(running[0], checkName(running[1])); check.Status != "in_progress" {
				t.Errorf("the run of %s, which was not cancelled, is %s %s", running[1], check.Status, check.Conclusion)
			}
		}
		env.git.grant("dev", "read")
		refused := env.runCommand(number, "dev", "/test label")
		equal(t, "the disposition of the author's command without write access", refused.Status.Disposition,
			v1alpha1.DispositionIgnored)
		equal(t, "the reason of that", planOf(refused).Reason, "NotApproved")
		env.runCommand(number, "dev", "please stop\n\n/cancel")
		env.awaitCheck(sha, checkName("pr"), "cancelled", soon)
		env.releaseRuns(env.awaitRunsCreated(its))
		env.awaitCheck(its, checkName("pr"), "success", soon)
		env.awaitAllSettled(soon)
		env.requireNoFailure(sha)
		var cancelled []string
		for _, run := range env.runs() {
			if run.Spec.Status == pipelinev1.PipelineRunSpecStatusCancelledRunFinally {
				cancelled = append(cancelled, run.Name+" "+run.Labels[pipelinesascode.SHA]+" "+
					run.Labels[pipelinesascode.EventType])
			}
		}
		if len(cancelled) != 2 {
			t.Errorf("%q were asked to end, want two of %s", cancelled, sha)
		}
	})
}

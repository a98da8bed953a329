// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// closePull closes or merges a pull request of the repository itself, and returns the event.
func (env *environment) closePull(number int, merge bool) delivery {
	env.t.Helper()
	if g, ok := env.git.(*onGitLab); ok {
		if !merge {
			g.CloseMergeRequest(projectName, int64(number), somebody)
			return env.git.pulled(number, "closed")
		}
		g.Merge(projectName, int64(number), somebody)
		return env.git.pulled(number, "merged")
	}
	if merge {
		env.forge.MergePull(repoName, number, somebody)
	} else {
		env.forge.ClosePull(repoName, number)
	}
	return env.git.pulled(number, "closed")
}

// openTopicPull pushes a branch with a pipeline for pull requests that is held, and opens a pull
// request from it.
func (env *environment) openTopicPull(branch string) (number int, sha string) {
	env.t.Helper()
	if env.git.tip("main") == "" {
		env.git.commit("main", forge.Change{Files: map[string]string{"README": "main"}, Message: "base"})
	}
	sha = env.git.commit(branch, forge.Change{Message: branch, Author: "dev", Files: map[string]string{
		".tekton/pr.yaml":    pipeline("pr", "pull_request", held),
		".tekton/label.yaml": pipeline("label", "pull_request", held, `pipelinesascode.tekton.dev/on-label: "[ready]"`),
	}})
	return env.git.open("", branch, "dev"), sha
}

// Closing or merging a pull request cancels its runs, also those of its labels. An earlier action
// that is delivered later starts nothing. Runs of pushes and of other pull requests go on. A
// reopened pull request runs.
func TestClosedPullRequestCancelsRuns(t *testing.T) {
	t.Parallel()
	for name, merge := range map[string]bool{"closed": false, "merged": true} {
		t.Run(name, func(t *testing.T) {
			onlyInTestAllUnless(t, merge)
			forEachService(t, setup{receivers: 1, controllers: 1},
				func(t *testing.T, env *environment) { closingCancelsRuns(t, env, merge) })
		})
	}
}

func closingCancelsRuns(t *testing.T, env *environment, merge bool) {
	env.git.grant("dev", "write")
	pushed, push := env.push(map[string]string{".tekton/push.yaml": pipeline("pushed", "push", held)})
	env.deliver(push, http.StatusAccepted)
	number, sha := env.openTopicPull("topic")
	other, its := env.openTopicPull("other")
	env.deliver(env.opened(number), http.StatusAccepted)
	env.deliver(env.opened(other), http.StatusAccepted)
	env.deliver(env.addLabel(number, "dev", "ready"), http.StatusAccepted)
	for _, running := range [][2]string{{pushed, "pushed"}, {sha, "pr"}, {sha, "label"}, {its, "pr"}} {
		env.awaitCheck(running[0], checkName(running[1]), "in_progress", soon)
	}
	late := env.addLabel(number, "dev", "late") // is delivered after the end
	closed := env.closePull(number, merge)
	env.deliver(closed, http.StatusAccepted)
	env.deliver(closed, http.StatusAccepted)
	for _, name := range []string{"pr", "label"} {
		check := env.awaitCheck(sha, checkName(name), "cancelled", soon)
		if !check.Tells("closed") {
			t.Errorf("the check of %s does not say why: %s", name, check.Text)
		}
		env.requireOneCheck(sha, checkName(name))
	}
	env.requireDisposition(closed, v1alpha1.DispositionCancels, "PullRequestClosed")
	env.deliver(late, http.StatusAccepted)
	env.requireDisposition(late, v1alpha1.DispositionIgnored, "Cancelled")
	for _, running := range [][2]string{{pushed, "pushed"}, {its, "pr"}} {
		if check, _ := env.currentCheck(running[0], checkName(running[1])); check.Status != "in_progress" {
			t.Errorf("the run of %s, which is another's, is %s %s", running[1], check.Status, check.Conclusion)
		}
	}
	told := 0
	for _, run := range env.runs() {
		if run.Spec.Status == pipelinev1.PipelineRunSpecStatusCancelledRunFinally {
			told++
		}
	}
	if runs := env.runs(); told != 2 || len(runs) != 4 || len(env.git.checks(sha)) != 2 {
		t.Errorf("%d of %d runs were asked to end, want 2 of 4; %d checks on the closed pull request", told, len(runs),
			len(env.git.checks(sha)))
	}
	if !merge {
		env.requireReopenRuns(number, sha)
	}
	env.releaseRuns(env.awaitRunsCreated(pushed))
	env.releaseRuns(env.awaitRunsCreated(its))
	env.awaitAllSettled(soon)
	env.requireNoFailure(sha)
}

// requireReopenRuns reopens a closed pull request and requires another run that is not cancelled.
func (env *environment) requireReopenRuns(number int, sha string) {
	env.t.Helper()
	if g, ok := env.git.(*onGitLab); ok {
		g.ReopenMergeRequest(projectName, int64(number), "dev")
	} else {
		env.forge.ReopenPull(repoName, number)
	}
	reopened := env.git.pulled(number, "reopened")
	env.deliver(reopened, http.StatusAccepted)
	env.eventually(soon, "the reopened pull request runs", func() error {
		event := env.recordOf(reopened)
		for _, run := range event.Status.Runs { // the run of its label as well: the label is still set
			if run.UID == "" {
				return fmt.Errorf("%s is not created", run.Name)
			}
		}
		if len(event.Status.Runs) == 0 || event.Cancelled("") != nil {
			return fmt.Errorf("%d runs, annotations %v", len(event.Status.Runs), event.Annotations)
		}
		return nil
	})
	event := env.recordOf(reopened)
	env.releaseRuns(&event)
	env.awaitCheck(sha, checkName("pr"), "success", soon)
}

// D5: the patch that cancels the run of a closed pull request is held until the run has ended.
// Tekton then refuses the patch, and the check shows how the run ended.
func TestRunEndsBeforeItIsCancelled(t *testing.T) {
	onlyInTestAll(t)
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, runEndsBeforeCancel)
}

func runEndsBeforeCancel(t *testing.T, env *environment) {
	env.git.grant("dev", "write")
	number, sha := env.openTopicPull("race")
	opened := env.opened(number)
	env.deliver(opened, http.StatusAccepted)
	check := env.awaitCheck(sha, checkName("pr"), "in_progress", soon)
	event := env.recordOf(opened)
	run := event.Status.Runs[0]
	env.eventually(soon, "the run is annotated: no other patch is on its way",
		func() error { return env.hasCheckID(run.Name, check) })
	over := make(chan struct{})
	told := env.controller().Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return c.Is("patch", "pipelineruns") && c.Name == run.Name }, Count: 1,
		Do: cluster.Hold(over),
	})
	env.deliver(env.closePull(number, false), http.StatusAccepted)
	env.awaitHits(told, 1)
	env.releaseRuns(&event)
	env.awaitRunEnd(run)
	close(over)
	env.awaitCheck(sha, checkName("pr"), "success", afterFault)
	env.awaitAllSettled(afterFault)
	if made := env.getRun(run.Name); made.Spec.Status != "" {
		t.Errorf("the run that had ended has spec.status %q", made.Spec.Status)
	}
	env.requireNoFailure(sha)
}

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

// closes closes or merges a pull request of the repository itself, and returns the event.
func (w *world) closes(number int, merge bool) delivery {
	w.t.Helper()
	if g, ok := w.git.(*onGitLab); ok {
		if !merge {
			g.CloseMergeRequest(projectName, int64(number), somebody)
			return w.git.pulled(number, "closed")
		}
		g.Merge(projectName, int64(number), somebody)
		return w.git.pulled(number, "merged")
	}
	if merge {
		w.forge.MergePull(repoName, number, somebody)
	} else {
		w.forge.ClosePull(repoName, number)
	}
	return w.git.pulled(number, "closed")
}

// topic pushes a branch with a pipeline for pull requests that does not end by itself, and opens a
// pull request of it.
func (w *world) topic(branch string) (number int, sha string) {
	w.t.Helper()
	if w.git.tip("main") == "" {
		w.git.commit("main", forge.Change{Files: map[string]string{"README": "main"}, Message: "base"})
	}
	sha = w.git.commit(branch, forge.Change{Message: branch, Author: "dev", Files: map[string]string{
		".tekton/pr.yaml":    pipeline("pr", "pull_request", held),
		".tekton/label.yaml": pipeline("label", "pull_request", held, `pipelinesascode.tekton.dev/on-label: "[ready]"`),
	}})
	return w.git.open("", branch, "dev"), sha
}

// Issue 14, item 5: a pull request that is closed or merged ends its runs, those of its labels too,
// and what is delivered later although it happened before starts nothing. Runs of pushes and of
// other pull requests go on; opened again, the pull request runs.
func TestAClosedPullRequestEndsItsRuns(t *testing.T) {
	t.Parallel()
	for name, merge := range map[string]bool{"closed": false, "merged": true} {
		t.Run(name, func(t *testing.T) {
			onlyInTestAllUnless(t, merge)
			t.Parallel()
			forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) { endsItsRuns(t, w, merge) })
		})
	}
}

func endsItsRuns(t *testing.T, w *world, merge bool) {
	w.git.grant("dev", "write")
	pushed, push := w.push(map[string]string{".tekton/push.yaml": pipeline("pushed", "push", held)})
	w.deliver(push, http.StatusAccepted)
	number, sha := w.topic("topic")
	other, its := w.topic("other")
	w.deliver(w.opened(number), http.StatusAccepted)
	w.deliver(w.opened(other), http.StatusAccepted)
	w.deliver(w.labels(number, "dev", "ready"), http.StatusAccepted)
	for _, running := range [][2]string{{pushed, "pushed"}, {sha, "pr"}, {sha, "label"}, {its, "pr"}} {
		w.checkReaches(running[0], checkName(running[1]), "in_progress", soon)
	}
	late := w.labels(number, "dev", "late") // is delivered when all is over
	closed := w.closes(number, merge)
	w.deliver(closed, http.StatusAccepted)
	w.deliver(closed, http.StatusAccepted)
	for _, name := range []string{"pr", "label"} {
		check := w.checkReaches(sha, checkName(name), "cancelled", soon)
		if !check.Tells("closed") {
			t.Errorf("the check of %s does not say why: %s", name, check.Text)
		}
		w.oneCheck(sha, checkName(name))
	}
	w.disposed(closed, v1alpha1.DispositionCancels, "PullRequestClosed")
	w.deliver(late, http.StatusAccepted)
	w.disposed(late, v1alpha1.DispositionIgnored, "Cancelled")
	for _, running := range [][2]string{{pushed, "pushed"}, {its, "pr"}} {
		if check, _ := w.current(running[0], checkName(running[1])); check.Status != "in_progress" {
			t.Errorf("the run of %s, which is another's, is %s %s", running[1], check.Status, check.Conclusion)
		}
	}
	told := 0
	for _, run := range w.runs() {
		if run.Spec.Status == pipelinev1.PipelineRunSpecStatusCancelledRunFinally {
			told++
		}
	}
	if runs := w.runs(); told != 2 || len(runs) != 4 || len(w.git.checks(sha)) != 2 {
		t.Errorf("%d of %d runs were told to end, want 2 of 4; %d checks on the closed pull request", told, len(runs), len(w.git.checks(sha)))
	}
	if !merge {
		w.runsAgain(number, sha)
	}
	w.release(w.created(pushed))
	w.release(w.created(its))
	w.settled(soon)
	w.neverFailed(sha)
}

// runsAgain opens a closed pull request again and requires another run, which nothing ends.
func (w *world) runsAgain(number int, sha string) {
	w.t.Helper()
	if g, ok := w.git.(*onGitLab); ok {
		g.ReopenMergeRequest(projectName, int64(number), "dev")
	} else {
		w.forge.ReopenPull(repoName, number)
	}
	reopened := w.git.pulled(number, "reopened")
	w.deliver(reopened, http.StatusAccepted)
	w.eventually(soon, "the reopened pull request runs", func() error {
		event := w.recordOf(reopened)
		for _, run := range event.Status.Runs { // that of its label as well: it has it still
			if run.UID == "" {
				return fmt.Errorf("%s is not created", run.Name)
			}
		}
		if len(event.Status.Runs) == 0 || event.Cancelled("") != nil {
			return fmt.Errorf("%d runs, annotations %v", len(event.Status.Runs), event.Annotations)
		}
		return nil
	})
	event := w.recordOf(reopened)
	w.release(&event)
	w.checkReaches(sha, checkName("pr"), "success", soon)
}

// D5: the patch that cancels the run of a pull request that was closed is held until the run has
// ended by itself. Tekton refuses it then: the check says how the run ended.
func TestD5ARunEndsBeforeItIsToldTo(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, endsBeforeItIsToldTo)
}

func endsBeforeItIsToldTo(t *testing.T, w *world) {
	w.git.grant("dev", "write")
	number, sha := w.topic("race")
	opened := w.opened(number)
	w.deliver(opened, http.StatusAccepted)
	check := w.checkReaches(sha, checkName("pr"), "in_progress", soon)
	event := w.recordOf(opened)
	run := event.Status.Runs[0]
	w.eventually(soon, "the run is annotated: no other patch is on its way", func() error { return w.carries(run.Name, check) })
	over := make(chan struct{})
	told := w.controller().Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return c.Is("patch", "pipelineruns") && c.Name == run.Name }, Count: 1, Do: cluster.Hold(over),
	})
	w.deliver(w.closes(number, false), http.StatusAccepted)
	w.hit(told, 1)
	w.release(&event)
	w.ended(run)
	close(over)
	w.checkReaches(sha, checkName("pr"), "success", afterFault)
	w.settled(afterFault)
	if made := w.run(run.Name); made.Spec.Status != "" {
		t.Errorf("the run that had ended is told %q", made.Spec.Status)
	}
	w.neverFailed(sha)
}

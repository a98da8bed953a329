// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// What pull requests and tags run, in one world.
func TestPullRequestsAndTagsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	t.Run("actions", func(t *testing.T) { actionsRun(t, w.in(t)) })
	t.Run("tags", func(t *testing.T) { tagsRun(t, w.in(t)) })
	w.invariants()
}

// Every action of a pull request that brings something to run starts one run of the pull request's
// head of that moment.
func actionsRun(t *testing.T, w *world) {
	w.git.commit("main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request")}})
	first := w.git.commit("topic", forge.Change{Files: map[string]string{"a": "1"}})
	number := w.forge.OpenPullRequest(forge.NewPull{Base: repoName, HeadBranch: "topic", Author: "octocat", Draft: true})
	want := map[string]int{}
	act := func(sha, action string) {
		w.deliver(w.git.pulled(number, action), 202)
		want[sha]++
		w.eventually(soon, action+" has its run", func() error {
			if have := w.runsBySHA(); have[sha] != want[sha] {
				return fmt.Errorf("%v PipelineRuns by commit, want %v", have, want)
			}
			return nil
		})
		w.checkReaches(sha, checkName("pr"), "success", soon)
	}
	act(first, "opened")
	second := w.git.commit("topic", forge.Change{Files: map[string]string{"a": "2"}})
	act(second, "synchronize")
	w.forge.ClosePull(repoName, number)
	w.deliver(w.git.pulled(number, "closed"), 202) // it ends what is over already
	w.forge.ReopenPull(repoName, number)
	act(second, "reopened")
	w.forge.ReadyPull(repoName, number)
	act(second, "ready_for_review")
	w.settled(soon)
	have := w.runsBySHA()
	maps.DeleteFunc(have, func(sha string, _ int) bool { return want[sha] == 0 })
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("PipelineRuns by commit (-want +got):\n%s", diff)
	}
	w.neverFailed(first)
	w.neverFailed(second)
}

// runsBySHA counts the PipelineRuns of each commit.
func (w *world) runsBySHA() map[string]int {
	w.t.Helper()
	have := map[string]int{}
	for _, run := range w.runs() {
		have[run.Labels[pipelinesascode.SHA]]++
	}
	return have
}

// A tag that is pushed runs what is for its ref, on the tag's commit, and not what is for branches.
func tagsRun(t *testing.T, w *world) {
	sha := w.git.commit("main", forge.Change{Files: map[string]string{
		".tekton/branch.yaml": pipeline("branch", "push"), ".tekton/tag.yaml": strings.Replace(pipeline("tag", "push"), "[main]", "[refs/tags/v*]", 1),
	}})
	w.git.point("refs/tags/v1.2", sha)
	w.deliver(w.git.pushed("refs/tags/v1.2"), 202)
	w.checkReaches(sha, checkName("tag"), "success", soon)
	w.settled(soon)
	if all := w.git.checks(sha); len(all) != 1 || w.runsBySHA()[sha] != 1 {
		t.Errorf("%d checks and %d PipelineRuns, want one of each", len(all), w.runsBySHA()[sha])
	}
	w.neverFailed(sha)
}

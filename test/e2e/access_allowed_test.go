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

// Pull requests and pushed tags start the pipelines that are meant for them.
func TestPullRequestsAndTagsRun(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	t.Run("actions", func(t *testing.T) { actionsRun(t, env.forSubtest(t)) })
	t.Run("tags", func(t *testing.T) { tagsRun(t, env.forSubtest(t)) })
	env.requireInvariants()
}

// actionsRun requires that every action of a pull request that can start a run starts one, of the
// head at that moment.
func actionsRun(t *testing.T, env *environment) {
	env.git.commit("main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request")}})
	first := env.git.commit("topic", forge.Change{Files: map[string]string{"a": "1"}})
	number := env.forge.OpenPullRequest(forge.NewPull{Base: repoName, HeadBranch: "topic", Author: "octocat", Draft: true})
	want := map[string]int{}
	act := func(sha, action string) {
		env.deliver(env.git.pulled(number, action), 202)
		want[sha]++
		env.eventually(soon, action+" has its run", func() error {
			if have := env.runsBySHA(); have[sha] != want[sha] {
				return fmt.Errorf("%v PipelineRuns by commit, want %v", have, want)
			}
			return nil
		})
		env.awaitCheck(sha, checkName("pr"), "success", soon)
	}
	act(first, "opened")
	second := env.git.commit("topic", forge.Change{Files: map[string]string{"a": "2"}})
	act(second, "synchronize")
	env.forge.ClosePull(repoName, number)
	env.deliver(env.git.pulled(number, "closed"), 202) // its runs are finished already
	env.forge.ReopenPull(repoName, number)
	act(second, "reopened")
	env.forge.ReadyPull(repoName, number)
	act(second, "ready_for_review")
	env.awaitAllSettled(soon)
	have := env.runsBySHA()
	maps.DeleteFunc(have, func(sha string, _ int) bool { return want[sha] == 0 })
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("PipelineRuns by commit (-want +got):\n%s", diff)
	}
	env.requireNoFailure(first)
	env.requireNoFailure(second)
}

// runsBySHA counts the PipelineRuns of each commit.
func (env *environment) runsBySHA() map[string]int {
	env.t.Helper()
	have := map[string]int{}
	for _, run := range env.runs() {
		have[run.Labels[pipelinesascode.SHA]]++
	}
	return have
}

// tagsRun requires that a pushed tag runs the pipelines for its ref, on the tag's commit, and none
// of those for branches.
func tagsRun(t *testing.T, env *environment) {
	sha := env.git.commit("main", forge.Change{Files: map[string]string{
		".tekton/branch.yaml": pipeline("branch", "push"),
		".tekton/tag.yaml":    strings.Replace(pipeline("tag", "push"), "[main]", "[refs/tags/v*]", 1),
	}})
	env.git.point("refs/tags/v1.2", sha)
	env.deliver(env.git.pushed("refs/tags/v1.2"), 202)
	env.awaitCheck(sha, checkName("tag"), "success", soon)
	env.awaitAllSettled(soon)
	if all := env.git.checks(sha); len(all) != 1 || env.runsBySHA()[sha] != 1 {
		t.Errorf("%d checks and %d PipelineRuns, want one of each", len(all), env.runsBySHA()[sha])
	}
	env.requireNoFailure(sha)
}

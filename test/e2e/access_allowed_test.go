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
	for _, part := range []struct {
		name string
		play func(t *testing.T, w *world)
	}{{"who may", whoMayRun}, {"actions", actionsRun}, {"tags", tagsRun}} {
		t.Run(part.name, func(t *testing.T) {
			part.play(t, w.in(t))
			w.in(t).settled(soon)
		})
	}
	w.invariants()
}

// Who may: a pull request runs when its author can write, from whatever source that right is, and
// waits for approval otherwise, from a branch of the repository as well: members who may only read
// can open one there. An App that has pushed a branch of the repository runs, and nobody is asked
// about it.
func whoMayRun(t *testing.T, w *world) {
	roles := map[string]bool{"read": false, "triage": false, "write": true, "maintain": true, "admin": true}
	shas := map[string]string{}
	for role := range roles {
		user := "has-" + role
		w.git.grant(user, role)
		number, sha := w.forkPull(user)
		shas[role] = sha
		w.deliver(w.opened(number), 202)
	}
	roles["owner of the organisation"], roles["member of the organisation"] = true, false
	roles["branch of a reader"], roles["branch of a writer"], roles["branch of an App"] = false, true, true
	w.forge.SetOrgOwner("acme", "boss")
	w.forge.SetOrgMember("acme", "member", false)
	for role, user := range map[string]string{"owner of the organisation": "boss", "member of the organisation": "member"} {
		number, sha := w.forkPull(user)
		shas[role] = sha
		w.deliver(w.opened(number), 202)
	}
	const app = "renovate[bot]"
	asked := w.git.inject(askPermission, forge.Fault{Match: about(app), Do: forge.NotFound404()})
	for role, user := range map[string]string{"branch of a reader": "has-read", "branch of a writer": "has-write", "branch of an App": app} {
		branch := strings.ReplaceAll(role, " ", "-")
		shas[role] = w.git.commit(branch, forge.Change{Files: map[string]string{"a": branch}})
		w.deliver(w.opened(w.forge.OpenPullRequest(forge.NewPull{Base: repoName, HeadBranch: branch, Author: user})), 202)
	}

	want := 0
	for role, may := range roles {
		if !may {
			w.checkReaches(shas[role], application, "queued", soon)
			continue
		}
		want++
		w.checkReaches(shas[role], checkName("pr"), "success", soon)
		if all := w.git.checks(shas[role]); len(all) != 1 {
			t.Errorf("%s: the commit has %d checks, want 1", role, len(all))
		}
	}
	w.settled(soon)
	if runs := w.runs(); len(runs) != want {
		t.Errorf("%d PipelineRuns, want %d", len(runs), want)
	}
	if asked.Hits() != 0 {
		t.Error("the access of an App was asked for")
	}
}

// Every action of a pull request that brings something to run starts one run of the pull request's head of that moment.
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

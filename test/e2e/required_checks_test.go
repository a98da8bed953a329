// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
)

const (
	forAPI      = `pipelinesascode.tekton.dev/on-path-change: "[services/api/**]"`
	forSlow     = `pipelinesascode.tekton.dev/on-path-change: "[slow/**]"`
	forBoth     = "pull_request, merge_group"
	unmatchedOn = `{"unmatched":"skipped"}`
)

// openChange opens a pull request that changes one file.
func (env *environment) openChange(branch, file string) (number int, sha string) {
	env.t.Helper()
	sha = env.git.commit(branch, forge.Change{Files: map[string]string{file: branch}, Author: "dev", Message: branch})
	return env.git.open("", branch, "dev"), sha
}

// A pipeline whose path filter excludes a pull request has a skipped check, which a requested run
// replaces.
func TestUnmatchedPipelineShowsSkippedCheck(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.git.grant("dev", "write")
		env.changeSettings(unmatchedOn)
		env.git.commit("main", forge.Change{Files: map[string]string{
			".tekton/api.yaml": pipeline("api", "pull_request", forAPI),
			".tekton/all.yaml": pipeline("all", "pull_request"), ".tekton/push.yaml": pipeline("pushed", "push", forAPI),
		}})
		number, sha := env.openChange("docs", "docs/a.md")
		env.deliver(env.opened(number), http.StatusAccepted)
		env.awaitCheck(sha, checkName("all"), "success", soon)
		check := env.awaitCheck(sha, checkName("api"), "skipped", soon)
		const clause = "on-path-change [services/api/**] matches no changed file (changed: docs/a.md)"
		if !containsAll(check.Title, "Skipped: "+clause) {
			t.Errorf("%q, want the clause", check.Title)
		}
		env.awaitAllSettled(soon)
		env.requireOnlyStarted("all")
		if _, found := newestOf(env.git.checks(sha), checkName("pushed")); found {
			t.Error("a pipeline for pushes has a check on a pull request")
		}
		env.deliver(env.comment(number, "dev", "/test api"), http.StatusAccepted)
		env.awaitCheck(sha, checkName("api"), "success", soon)
		env.awaitAllSettled(soon)
		env.deliver(env.git.pulled(number, "reopened"), http.StatusAccepted)
		env.awaitAllSettled(soon)
		if now, _ := newestOf(env.git.checks(sha), checkName("api")); now.Conclusion != "success" {
			t.Errorf("%s, want the result to stay", now.Conclusion)
		}
	})
}

// On a forge that enforces required checks, a pull request that changes only documentation can be
// merged, and one in the merge queue too. The queue's commit runs once, and its end cancels what
// still runs.
func TestRequiredChecksWithPathFiltersAndMergeQueue(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	env.git.grant("dev", "write")
	env.changeSettings(unmatchedOn)
	env.git.commit("main", forge.Change{Files: map[string]string{
		".tekton/api.yaml":  pipeline("api", forBoth, forAPI),
		".tekton/slow.yaml": pipeline("slow", forBoth, forSlow, held),
	}})
	env.forge.Require(repoName, "main", checkName("api"))

	number, sha := env.openChange("docs", "docs/a.md")
	if _, refused := env.forge.Merge(repoName, number, somebody); refused == "" {
		t.Fatal("the forge merges without the required check")
	}
	env.deliver(env.opened(number), http.StatusAccepted)
	env.awaitCheck(sha, checkName("api"), "skipped", soon)
	if _, refused := env.forge.Merge(repoName, number, somebody); refused != "" {
		t.Errorf("documentation only: %s", refused)
	}
	env.deliver(env.git.pulled(number, "closed"), http.StatusAccepted)

	env.mergeQueued("docs-queued", "docs/b.md", "skipped")
	env.mergeQueued("code", "services/api/main.go", "success")
	env.requireOnlyStarted("api", "api") // of the pull request and of the queue

	number, sha = env.openChange("slow", "slow/a")
	env.deliver(env.opened(number), http.StatusAccepted)
	env.awaitCheck(sha, checkName("api"), "skipped", soon)
	group := env.queue(number)
	env.awaitCheck(group.SHA, checkName("slow"), "in_progress", soon)
	env.forge.Dequeue(group)
	env.deliver(env.forge.MergeGroupDelivery(group, "destroyed", "dequeued"), http.StatusAccepted)
	env.awaitCheck(group.SHA, checkName("slow"), "cancelled", soon)
	env.awaitCheck(sha, checkName("slow"), "in_progress", soon)
}

// queue puts a pull request into the merge queue, and sends GitHub's two events.
func (env *environment) queue(number int) *forge.MergeGroup {
	env.t.Helper()
	group, refused := env.forge.Queue(repoName, number, somebody)
	if refused != "" {
		env.t.Fatalf("the queue refuses #%d: %s", number, refused)
	}
	env.deliver(env.git.pushed("refs/heads/"+group.Branch), http.StatusAccepted)
	env.deliver(env.forge.MergeGroupDelivery(group, "checks_requested", ""), http.StatusAccepted)
	return group
}

// mergeQueued opens a pull request that changes a file and merges it with the queue, once its
// required check has this conclusion.
func (env *environment) mergeQueued(branch, file, conclusion string) {
	env.t.Helper()
	number, sha := env.openChange(branch, file)
	env.deliver(env.opened(number), http.StatusAccepted)
	env.awaitCheck(sha, checkName("api"), conclusion, soon)
	group := env.queue(number)
	env.awaitCheck(group.SHA, checkName("api"), conclusion, soon)
	if refused := env.forge.MergeQueued(group); refused != "" {
		env.t.Errorf("%s in the queue: %s", file, refused)
	}
	env.deliver(env.forge.MergeGroupDelivery(group, "destroyed", "merged"), http.StatusAccepted)
	env.deliver(env.git.pulled(number, "closed"), http.StatusAccepted)
}

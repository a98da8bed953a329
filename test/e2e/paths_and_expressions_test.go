// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// Paths and expressions in annotations decide which pipelines a push starts.
func TestPathsAndExpressionsOnPush(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	const p = pipelinesascode.GroupName + "/"
	env.push(map[string]string{
		".tekton/docs.yaml": pipeline("docs", "push", p+"on-path-change: '[docs/**]'"),
		".tekton/code.yaml": pipeline("code", "push", p+"on-path-change-ignore: '[docs/**]'"),
		".tekton/cel-push.yaml": pipeline("cel-push", "x",
			p+`on-cel-expression: 'event == "push" && target_branch == "main" && "docs/**".pathChanged()'`),
		".tekton/cel-pull.yaml": pipeline("cel-pull", "x", p+`on-cel-expression: 'event == "pull_request"'`),
		".tekton/broken.yaml":   pipeline("broken", "x", p+`on-cel-expression: 'event == "push" && taget_branch == "main"'`),
	})
	sha := env.pushAccepted(map[string]string{"docs/a.md": "words"})
	for _, name := range []string{"docs", "cel-push"} {
		env.awaitCheck(sha, checkName(name), "success", soon)
	}
	check := env.awaitCheck(sha, checkName("broken"), "failure", soon)
	if want := "on-cel-expression: 1:20: taget_branch is not defined"; !strings.Contains(check.Text, want) {
		t.Errorf("the author reads %q, want %q", check.Text, want)
	}
	env.awaitAllSettled(soon)
	env.requireOnlyStarted("cel-push", "docs")
	if got := env.countOperations(listChanges); got != 1 {
		t.Errorf("%d lists of changed files, want 1", got)
	}
}

// B14: a push of a commit of an open pull request waits while the pull requests cannot be read,
// and then runs as the pull request only. B3: the event also waits for the changed files.
func TestPushAndPullRequestOfOneCommitRunOnce(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	const p = pipelinesascode.GroupName + "/"
	env.push(map[string]string{
		".tekton/both.yaml": pipeline("both", "x", p+`on-cel-expression: '"src/**".pathChanged()'`),
	})
	sha := env.git.commit("topic", forge.Change{Files: map[string]string{"src/a.go": "package a"}, Message: "code"})
	number := env.forge.OpenPullRequest(forge.NewPull{Base: repoName, HeadBranch: "topic", Title: "Code"})
	for _, route := range []string{forge.RouteCommitPulls, forge.RoutePullFiles, forge.RouteCommit} {
		env.forge.Inject(forge.Fault{Route: route, Count: 4, Do: forge.ServerError502HTML()})
	}
	push := env.git.pushed("refs/heads/topic")
	env.deliver(push, 202)
	env.deliver(env.git.pulled(number, "opened"), 202)
	env.awaitCheck(sha, checkName("both"), "success", afterFault)
	env.awaitAllSettled(afterFault)
	env.requireNoFailure(sha)
	env.requireOnlyStarted("both")
	want := fmt.Sprintf("the commit is in pull request #%d, whose own event runs it (skip-push-event-for-pr-commits)",
		number)
	if got := env.planReasons(push)["both"]; got != want {
		t.Errorf("the push: %q, want %q", got, want)
	}
}

// requireOnlyStarted requires that these pipelines have one run each, and no other has.
func (env *environment) requireOnlyStarted(names ...string) {
	env.t.Helper()
	var got []string
	for _, run := range env.runs() {
		got = append(got, run.Annotations[pipelinesascode.OriginalPRName])
	}
	slices.Sort(got)
	if !slices.Equal(got, names) {
		env.t.Errorf("runs of %v, want %v", got, names)
	}
}

// planReasons returns the decisions about a delivery, by pipeline.
func (env *environment) planReasons(d delivery) map[string]string {
	env.t.Helper()
	reasons := map[string]string{}
	for _, event := range env.events() {
		if event.Spec.DeliveryKey != d.ID() {
			continue
		}
		for _, decision := range planOf(event).Decisions {
			reasons[decision.Pipeline] = decision.Reason
		}
	}
	return reasons
}

func planOf(event v1alpha1.GitEvent) v1alpha1.Plan {
	if event.Status.Plan == nil {
		return v1alpha1.Plan{}
	}
	return *event.Status.Plan
}

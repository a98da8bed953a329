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

// The paths and expressions of pipelines that differ in their annotations.
func TestPathsAndExpressionsOnAPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	const p = pipelinesascode.GroupName + "/"
	w.push(map[string]string{
		".tekton/docs.yaml":     pipeline("docs", "push", p+"on-path-change: '[docs/**]'"),
		".tekton/code.yaml":     pipeline("code", "push", p+"on-path-change-ignore: '[docs/**]'"),
		".tekton/cel-push.yaml": pipeline("cel-push", "x", p+`on-cel-expression: 'event == "push" && target_branch == "main" && "docs/**".pathChanged()'`),
		".tekton/cel-pull.yaml": pipeline("cel-pull", "x", p+`on-cel-expression: 'event == "pull_request"'`),
		".tekton/broken.yaml":   pipeline("broken", "x", p+`on-cel-expression: 'event == "push" && taget_branch == "main"'`),
	})
	sha, delivery := w.push(map[string]string{"docs/a.md": "words"})
	w.deliver(delivery, 202)
	for _, name := range []string{"docs", "cel-push"} {
		w.checkReaches(sha, checkName(name), "success", soon)
	}
	check := w.checkReaches(sha, checkName("broken"), "failure", soon)
	if want := "on-cel-expression: 1:20: undeclared reference to 'taget_branch'"; !strings.Contains(check.Text, want) {
		t.Errorf("the author reads %q, want %q", check.Text, want)
	}
	w.settled(soon)
	w.started("cel-push", "docs")
	if got := w.count(listChanges); got != 1 {
		t.Errorf("%d lists of changed files, want 1", got)
	}
}

// B14: a push of a commit that is in an open pull request waits while that cannot be told, and is
// then left to it. B3: the files that changed are waited for too.
func TestAPushAndAPullRequestOfOneCommitRunOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	const p = pipelinesascode.GroupName + "/"
	w.push(map[string]string{".tekton/both.yaml": pipeline("both", "x", p+`on-cel-expression: '"src/**".pathChanged()'`)})
	sha := w.git.commit("topic", forge.Change{Files: map[string]string{"src/a.go": "package a"}, Message: "code"})
	number := w.forge.OpenPullRequest(forge.NewPull{Base: repoName, HeadBranch: "topic", Title: "Code"})
	for _, route := range []string{forge.RouteCommitPulls, forge.RoutePullFiles, forge.RouteCommit} {
		w.forge.Inject(forge.Fault{Route: route, Count: 4, Do: forge.ServerError502HTML()})
	}
	push := w.git.pushed("refs/heads/topic")
	w.deliver(push, 202)
	w.deliver(w.git.pulled(number, "opened"), 202)
	w.checkReaches(sha, checkName("both"), "success", afterFault)
	w.settled(afterFault)
	w.neverFailed(sha)
	w.started("both")
	want := fmt.Sprintf("the commit is in pull request #%d, whose own event runs it (skip-push-event-for-pr-commits)", number)
	if got := w.reasons(push)["both"]; got != want {
		t.Errorf("the push: %q, want %q", got, want)
	}
}

// started requires that these pipelines have one run each, and no other has.
func (w *world) started(names ...string) {
	w.t.Helper()
	var got []string
	for _, run := range w.runs() {
		got = append(got, run.Annotations[pipelinesascode.OriginalPRName])
	}
	slices.Sort(got)
	if !slices.Equal(got, names) {
		w.t.Errorf("runs of %v, want %v", got, names)
	}
}

// reasons are the decisions about a delivery, by pipeline.
func (w *world) reasons(d delivery) map[string]string {
	w.t.Helper()
	reasons := map[string]string{}
	for _, event := range w.events() {
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

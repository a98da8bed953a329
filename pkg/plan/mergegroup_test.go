// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

const queueBranch = "gh-readonly-queue/main/pr-12-" + defaultSHA

// queued is a merge group for main, and queuedPush the push that GitHub sends for its branch.
func queued(action string) plan.Input {
	in := push()
	spec := in.Event.Spec
	in.Event.Name, spec.Trigger, spec.EventType, spec.Action = "merge-group-1", "merge_group", "merge_group", action
	spec.BaseRef, spec.HeadRef, spec.Before, spec.Sender = "main", queueBranch, defaultSHA, "github-merge-queue[bot]"
	return in
}

func queuedPush() plan.Input {
	in := push()
	in.Event.Spec.BaseRef, in.Event.Spec.HeadRef = "refs/heads/"+queueBranch, "refs/heads/"+queueBranch
	return in
}

// forQueue returns pipelines that start for a push to the queue's branch, for the merge group, for
// both or for neither.
func forQueue() []git.File {
	everywhere := `"[main, gh-readonly-queue/**]"`
	return []git.File{
		edited(pipeline("group"), "[push]", "[pull_request, merge_group]"),
		edited(pipeline("both"), "[push]", "[push, merge_group]", `"[main]"`, everywhere),
		edited(pipeline("paths", "on-path-change: 'src/**'"), "[push]", "[push, merge_group]", `"[main]"`, everywhere),
		edited(pipeline("push"), `"[main]"`, everywhere),
		pipeline("main"),
		edited(pipeline("pull"), "[push]", "[pull_request]"),
		withExpression("cel-group", `event == "merge_group" && target_branch == "main" && source_branch.startsWith("gh-readonly-queue/")`),
		withExpression("cel-push", `event == "push" && target_branch.startsWith("gh-readonly-queue/main/")`),
		withExpression("cel-paths", `event == "push" || event == "merge_group" && "src/**".pathChanged()`),
		withExpression("cel-both", `event in ["push", "merge_group"]`),
		withExpression("cel-deploys", `event != "pull_request" && target_branch == "main"`),
		withExpression("cel-before", `event != "pull_request" && source_branch.startsWith("gh-readonly-queue/")`),
	}
}

// An expression that does not mention merge groups starts nothing for one: it was written for
// pushes, and may deploy what is not merged yet.
func TestMergeGroupStartsItsPipelines(t *testing.T) {
	t.Parallel()
	w := &env{files: forQueue(), changed: git.Changes{Modified: []string{"src/a.go"}}, skipCI: true}
	made := w.make(t, queued("checks_requested"))
	if diff := cmp.Diff([]string{"group", "both", "paths", "cel-group", "cel-paths", "cel-both"}, created(made)); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s: %s", diff, made.Disposition, made.Message)
	}
	if w.count("access") != 0 {
		t.Errorf("requested %v, want no look-up of permissions: GitHub has checked who may merge", w.asked)
	}
	run := decoded(t, made.Runs[0])
	if run.Labels["pipelinesascode.tekton.dev/event-type"] != "merge_group" ||
		run.Annotations["pipelinesascode.tekton.dev/branch"] != "main" ||
		run.Annotations["pipelinesascode.tekton.dev/source-branch"] != queueBranch {
		t.Errorf("labels %v, annotations %v", run.Labels, run.Annotations)
	}
	w.changed = git.Changes{Modified: []string{"README.md"}}
	made = w.make(t, reporting(queued("checks_requested"), pacv1alpha1.UnmatchedPaths))
	if diff := cmp.Diff([]string{"paths", "cel-paths"}, unmatched(made)); diff != "" {
		t.Errorf("skipped checks (-want +got):\n%s", diff)
	}
}

// What the merge group's own event starts, or leaves because of its path filter, the push does not
// start.
func TestPushToMergeQueueStartsOnlyPipelinesOfPushes(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"src/a.go", "README.md"} {
		w := &env{files: forQueue(), changed: git.Changes{Modified: []string{file}}}
		for _, what := range []pacv1alpha1.Unmatched{"", pacv1alpha1.UnmatchedAll} {
			made := w.make(t, reporting(queuedPush(), what))
			if diff := cmp.Diff([]string{"push", "cel-push", "cel-before"}, created(made)); diff != "" || len(unmatched(made)) != 0 {
				t.Errorf("%s (-want +got):\n%s\nskipped checks %v", file, diff, unmatched(made))
			}
		}
	}
}

func TestEndOfMergeGroupCancels(t *testing.T) {
	t.Parallel()
	w := &env{files: forQueue()}
	in := queued("destroyed")
	made := w.make(t, in)
	if made.Disposition != v1alpha1.DispositionCancels || made.Reason != "MergeGroupEnded" || len(made.Runs) != 0 ||
		made.Cancels.Ref != "refs/heads/"+queueBranch || len(w.asked) != 0 {
		t.Fatalf("%+v, requested %v", made, w.asked)
	}
	event := func(in plan.Input) *v1alpha1.GitEvent {
		e := &v1alpha1.GitEvent{Spec: *in.Event.Spec}
		name, value, err := made.Cancels.CancelsAs("merge-group-2")
		if err != nil {
			t.Fatal(err)
		}
		e.Annotations = map[string]string{name: value}
		return e
	}
	if event(queued("checks_requested")).Cancelled("") == nil || event(push()).Cancelled("") != nil {
		t.Error("want it to cancel the runs of its own group, and not those of a push of the same commit")
	}
	if !strings.Contains(made.Message, "merge queue") {
		t.Error(made.Message)
	}
}

// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

func TestChangedFilesAreReadOnceIfNeeded(t *testing.T) {
	t.Parallel()
	many := func(annotation string) []git.File {
		var files []git.File
		for i := range 200 {
			files = append(files, pipeline(fmt.Sprintf("p%d", i), annotation))
		}
		return files
	}
	tests := map[string]struct {
		files []git.File
		want  int
	}{
		"200 path filters need one list": {many("on-path-change: 'docs/**'"), 1},
		"200 expressions need one list": {
			many(`on-cel-expression: '"docs/**".pathChanged() || event == "x"'`), 1,
		},
		"no filter needs none": {many("max-keep-runs: '3'"), 0},
		"a pipeline that declines anyway needs none": {
			[]git.File{pipeline("a", "on-path-change: 'docs/**'", "on-label: bug")}, 0,
		},
		"an expression that is false anyway needs none": {
			many(`on-cel-expression: '"docs/**".pathChanged() && event == "pull_request"'`), 0,
		},
		"a pipeline that cannot be read needs none": {
			[]git.File{{Path: ".tekton/bad.yaml", Data: []byte("a: [")}}, 0,
		},
		"of many that decline one that does not is enough": {
			append(many("on-label: bug"), pipeline("a", "on-path-change-ignore: 'docs/**'")), 1,
		},
		"what is said of the same files is the same for all": {
			[]git.File{pipeline("a", "on-path-change: '*.go'"), pipeline("b", "on-path-change-ignore: '*.go'")}, 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &env{files: tt.files, changed: git.Changes{Modified: []string{"main.go"}}}
			if made := w.make(t, push()); made.Wait != nil {
				t.Errorf("waits for %v", made.Wait)
			}
			if got := w.count("changed"); got != tt.want {
				t.Errorf("%d calls, want %d", got, tt.want)
			}
		})
	}
}

func TestPayloadIsReadOnceIfNeeded(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]int{
		`event == "push"`:                                  0,
		`event == "x" && body.a == "b"`:                    0,
		`body.a == "b"`:                                    1,
		`"*.go".pathChanged() && body.a == "b"`:            1,
		`headers["x-event"] == "push" && body.n == 12.5e0`: 1,
	} {
		w := &env{
			files: []git.File{
				pipeline("one", "on-cel-expression: '"+expression+"'"), pipeline("two", "on-cel-expression: '"+expression+"'"),
			},
			changed: git.Changes{Modified: []string{"main.go"}}, payload: `{"a": "b", "n": 12.5}`,
		}
		in := push()
		in.Event.Spec.Headers = map[string]string{"X-Event": "push"}
		made := w.make(t, in)
		if got := w.count("payload"); got != want {
			t.Errorf("%s: %d reads, want %d; plan %v", expression, got, want, made)
		}
		if files := strings.Contains(expression, "pathChanged"); (w.count("changed") > 0) != files {
			t.Errorf("%s: %d lists of changed files", expression, w.count("changed"))
		}
		if got := made.Reason; got != map[bool]string{true: "NoMatch",
			false: "Selected"}[strings.Contains(expression, `"x" &&`)] {
			t.Errorf("%s: %s, %v", expression, got, reasons(made))
		}
	}
}

func TestPushOfCommitInOpenPullRequest(t *testing.T) {
	t.Parallel()
	open := []git.Pull{
		{Number: 3}, {Number: 4, Open: true, SHA: sha, BaseRef: "stable", HeadRef: "main", HeadProjectID: 5},
	}
	tests := map[string]struct {
		prepare     func(*env, *plan.Input)
		runs, calls int
	}{
		"is left to the pull request":      {func(w *env, _ *plan.Input) { w.pulls = open }, 0, 1},
		"runs when it is in none":          {func(*env, *plan.Input) {}, 1, 1},
		"runs when all of them are closed": {func(w *env, _ *plan.Input) { w.pulls = open[:1] }, 1, 1},
		"runs when the setting is off, and nobody is asked": {func(w *env, in *plan.Input) {
			w.pulls, in.Config.SkipPushOfPulls = open, false
		}, 1, 0},
		"nobody is asked when nothing would run": {func(w *env, _ *plan.Input) {
			w.pulls, w.files = open, []git.File{pipeline("hello", "on-label: bug")}
		}, 0, 0},
		"a tag is not a push of a branch": {func(w *env, in *plan.Input) {
			w.pulls, w.files = open, []git.File{pipeline("hello", `on-cel-expression: "true"`)}
			in.Event.Spec.BaseRef, in.Event.Spec.HeadRef = "refs/tags/v1", "refs/tags/v1"
		}, 1, 0},
		"a pull request's own event asks nobody": {func(w *env, in *plan.Input) {
			w.pulls, w.files, w.writers = open, []git.File{pipeline("hello", `on-cel-expression: "true"`)}, "author"
			*in = forked()
		}, 1, 0},
		"an author's mistake is shown there too, not here": {func(w *env, _ *plan.Input) {
			w.pulls, w.files = open, []git.File{pipeline("hello", `on-cel-expression: "x"`)}
		}, 0, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, in := &env{files: []git.File{pipeline("hello")}}, push()
			tt.prepare(w, &in)
			made := w.make(t, in)
			if len(made.Runs) != tt.runs || len(created(made)) != tt.runs || w.count("pulls") != tt.calls {
				t.Errorf("runs %+v, asked %v, want %d and %d", made.Runs, w.asked, tt.runs, tt.calls)
			}
			const left = "the commit is in pull request #4, whose own event runs it (skip-push-event-for-pr-commits)"
			if got := reasons(made)["hello"]; (got == left) != (tt.runs == 0 && tt.calls == 1) {
				t.Errorf("the decision says %q", got)
			}
		})
	}
}

// What depends on a failed read stays open, and the read is not repeated for the next pipeline.
func TestFailedReadIsNotRepeated(t *testing.T) {
	t.Parallel()
	w := &env{changedErr: down(), pullsErr: down(), files: []git.File{
		pipeline("a", "on-path-change: '**'"), pipeline("b", "on-path-change: '**'"), pipeline("c"),
		pipeline("d", `on-cel-expression: '{{ pull_request_number }} == 1'`),
	}}
	made := w.make(t, push())
	if w.count("changed") != 1 || w.count("pulls") != 1 || made.Wait == nil || len(made.Runs) != 0 ||
		made.Disposition != v1alpha1.DispositionIgnored {
		t.Errorf("asked %v, %+v", w.asked, made)
	}
	for _, d := range made.Decisions {
		if !d.Open || !strings.HasPrefix(d.Reason, "waiting: ") {
			t.Errorf("%+v, want it open", d)
		}
	}
}

func TestReferencesAreReadOnce(t *testing.T) {
	t.Parallel()
	w := &env{tree: map[string]string{"tasks/own.yaml": task, address: task}}
	for i := range 20 {
		w.files = append(w.files, pipeline(fmt.Sprintf("run-%02d", i),
			`task: "[`+address+`, tasks/own.yaml, .tekton/shared.yaml]"`))
	}
	w.files = append(w.files, git.File{Path: ".tekton/shared.yaml", Data: []byte(task)})
	made := w.make(t, push())
	want := []string{"head", "files " + sha + " .tekton", "pulls", "address " + address, "file " + sha + " tasks/own.yaml"}
	if diff := cmp.Diff(want, w.asked); diff != "" || len(created(made)) != 20 {
		t.Errorf("%d runs, asked: %s", len(created(made)), diff)
	}
}

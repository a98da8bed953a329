// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/blob"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/match"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// annotated adds annotations ("name: value", without the common prefix) to a pipeline for pushes to main.
func annotated(name string, annotations ...string) git.File {
	file := helloFile(name)
	for _, a := range annotations {
		file.Data = []byte(strings.Replace(string(file.Data), "spec:\n", "    "+pipelinesascode.GroupName+"/"+a+"\nspec:\n", 1))
	}
	return file
}

func (w *world) edit(change func(*v1alpha1.GitEvent)) {
	w.t.Helper()
	e := w.event()
	change(e)
	w.must(w.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), e, system))
}

// payload stores the body of the event.
func (w *world) payload(body string) {
	w.t.Helper()
	ref, chunks, err := blob.Make(system, "push-1", "push-1", []byte(body))
	w.must(err)
	for _, chunk := range chunks {
		w.must(w.own.Tracker().Add(chunk))
	}
	w.edit(func(e *v1alpha1.GitEvent) { e.Spec.Payload = ref })
}

func (w *world) count(call string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range w.calls {
		if c == call {
			n++
		}
	}
	return n
}

// reasons are the decisions' by pipeline.
func (w *world) reasons() map[string]string {
	m := map[string]string{}
	for _, d := range w.event().Status.Plan.Decisions {
		m[d.Pipeline] = d.Reason
	}
	return m
}

func TestChangedFilesAreListedOnceAndOnlyIfADecisionDependsOnThem(t *testing.T) {
	t.Parallel()
	many := func(annotation string) []git.File {
		var files []git.File
		for i := range 200 {
			files = append(files, annotated(fmt.Sprintf("p%d", i), annotation))
		}
		return files
	}
	tests := map[string]struct {
		files []git.File
		want  int
	}{
		"200 path filters need one list":                     {many("on-path-change: 'docs/**'"), 1},
		"200 expressions need one list":                      {many(`on-cel-expression: '"docs/**".pathChanged() || event == "x"'`), 1},
		"no filter needs none":                               {many("max-keep-runs: '3'"), 0},
		"a pipeline that declines anyway needs none":         {[]git.File{annotated("a", "on-path-change: 'docs/**'", "on-label: bug")}, 0},
		"an expression that is false anyway needs none":      {many(`on-cel-expression: '"docs/**".pathChanged() && event == "pull_request"'`), 0},
		"a pipeline that cannot be read needs none":          {[]git.File{{Path: ".tekton/bad.yaml", Data: []byte("a: [")}}, 0},
		"of many that decline one that does not is enough":   {append(many("on-label: bug"), annotated("a", "on-path-change-ignore: 'docs/**'")), 1},
		"what is said of the same files is the same for all": {[]git.File{annotated("a", "on-path-change: '*.go'"), annotated("b", "on-path-change-ignore: '*.go'")}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.files...)
			w.git.changed = git.Changes{Modified: []string{"main.go"}}
			_, _ = w.reconcile()
			if w.event().Status.Plan == nil {
				t.Fatal("there is no plan")
			}
			if w.git.changedCalls != tt.want {
				t.Errorf("%d calls, want %d", w.git.changedCalls, tt.want)
			}
		})
	}
}

func TestWhatEveryPipelineDeclinesLeavesNoTraceWhateverIsUnreachable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, annotated("docs", "on-path-change: 'docs/**'", "on-label: bug"), annotated("cel", `on-cel-expression: 'body.x == 1 && "docs/**".pathChanged() && event == "x"'`))
	w.git.changedErr, w.git.pullsErr = fault.Transientf("GitUnavailable", "502"), fault.Transientf("GitUnavailable", "502")
	w.settle(corev1.ConditionTrue)
	if e := w.event(); e.Status.Disposition != v1alpha1.DispositionIgnored || len(w.git.writes) != 0 {
		t.Errorf("disposition %s, checks %v: want none", e.Status.Disposition, w.git.writes)
	}
}

func TestAListThatWasCutIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, annotated("go", "on-path-change: '*.go'"), annotated("docs", "on-path-change: 'docs/**'"), helloFile("hello"),
		annotated("lists", "max-keep-runs: '{{ files.all }}'"), annotated("plain", "max-keep-runs: '{{ revision }}'"))
	w.git.changed = git.Changes{Modified: []string{"main.go"}, Truncated: true}
	w.settle(corev1.ConditionTrue)
	const cut = "the Git service did not list all changed files"
	for pipeline, want := range map[string]bool{"go": true, "docs": true, "hello": false, "lists": false, "plain": false} {
		if got := w.reasons()[pipeline]; strings.HasSuffix(got, "; "+cut) != want {
			t.Errorf("%s: %q, cut is said: want %t", pipeline, got, want)
		}
	}
	for _, check := range w.git.checks {
		want := strings.HasSuffix(check.Name, "/ go") || strings.HasSuffix(check.Name, "/ lists")
		if strings.Contains(check.Text, cut) != want {
			t.Errorf("%s says %q, cut is said: want %t", check.Name, check.Text, want)
		}
	}
}

func TestThePayloadIsReadOnceAndOnlyIfAnExpressionDependsOnIt(t *testing.T) {
	t.Parallel()
	const get = "get eventpayloads"
	for expression, want := range map[string]int{
		`event == "push"`:                                  0,
		`event == "x" && body.a == "b"`:                    0,
		`body.a == "b"`:                                    1,
		`"*.go".pathChanged() && body.a == "b"`:            1,
		`headers["x-event"] == "push" && body.n == 12.5e0`: 1,
	} {
		w := newWorld(t, annotated("one", "on-cel-expression: '"+expression+"'"), annotated("two", "on-cel-expression: '"+expression+"'"))
		w.git.changed = git.Changes{Modified: []string{"main.go"}}
		w.payload(`{"a": "b", "n": 12.5}`)
		w.edit(func(e *v1alpha1.GitEvent) { e.Spec.Headers = map[string]string{"X-Event": "push"} })
		_, _ = w.reconcile()
		plan := w.event().Status.Plan
		if plan == nil || w.count(get) != want {
			t.Errorf("%s: %d reads, want %d; plan %v", expression, w.count(get), want, plan)
		}
		if files := strings.Contains(expression, "pathChanged"); (w.git.changedCalls > 0) != files {
			t.Errorf("%s: %d lists of changed files", expression, w.git.changedCalls)
		}
		if got := plan.Reason; got != map[bool]string{true: "NoMatch", false: "Selected"}[strings.Contains(expression, `"x" &&`)] {
			t.Errorf("%s: %s, %v", expression, got, w.reasons())
		}
	}
}

func TestACommitThatAsksForNoCIShowsOneSkippedCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, helloFile("hello"))
	w.git.skipCI = true
	w.settle(corev1.ConditionTrue)
	if len(w.git.checks) != 1 || w.git.checks["1"].Conclusion != status.Skipped || w.git.checks["1"].Title != "CI Skipped" || len(w.runs()) != 0 {
		t.Errorf("checks %v, %d runs, want one skipped check and no run", w.git.checks, len(w.runs()))
	}
	if e := w.event(); e.Status.Disposition != v1alpha1.DispositionSkipped || e.Status.Plan.Reason != "SkipCI" {
		t.Errorf("%+v", e.Status)
	}
}

func TestAPushOfACommitInAnOpenPullRequest(t *testing.T) {
	t.Parallel()
	open := []git.Pull{{Number: 3}, {Number: 4, Open: true}}
	tests := map[string]struct {
		prepare     func(*world)
		runs, calls int
	}{
		"is left to the pull request":      {func(w *world) { w.git.pulls = open }, 0, 1},
		"runs when it is in none":          {func(*world) {}, 1, 1},
		"runs when all of them are closed": {func(w *world) { w.git.pulls = open[:1] }, 1, 1},
		"runs when the setting is off, and nobody is asked": {func(w *world) {
			w.git.pulls, w.settings = open, map[string]string{"skip-push-event-for-pr-commits": "false"}
		}, 1, 0},
		"nobody is asked when nothing would run": {func(w *world) {
			w.git.pulls, w.git.files = open, []git.File{annotated("hello", "on-label: bug")}
		}, 0, 0},
		"a tag is not a push of a branch": {func(w *world) {
			w.git.pulls, w.git.files = open, []git.File{annotated("hello", `on-cel-expression: "true"`)}
			w.edit(func(e *v1alpha1.GitEvent) { e.Spec.BaseRef, e.Spec.HeadRef = "refs/tags/v1", "refs/tags/v1" })
		}, 1, 0},
		"a pull request's own event asks nobody": {func(w *world) {
			w.git.pulls, w.git.files = open, []git.File{annotated("hello", `on-cel-expression: "true"`)}
			w.fork()
			w.git.canWrite = func(string) (bool, error) { return true, nil }
		}, 1, 0},
		"an author's mistake is shown there too, not here": {func(w *world) {
			w.git.pulls, w.git.files = open, []git.File{annotated("hello", `on-cel-expression: "x"`)}
		}, 0, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, helloFile("hello"))
			tt.prepare(w)
			_, _ = w.reconcile()
			_, _ = w.reconcile()
			if len(w.runs()) != tt.runs || w.git.pullsCalls != tt.calls || len(w.git.checks) != tt.runs {
				t.Errorf("%d runs, %d calls, checks %v, want %d and %d", len(w.runs()), w.git.pullsCalls, w.git.checks, tt.runs, tt.calls)
			}
			const left = "the commit is in open pull request #4, whose own event runs it (skip-push-event-for-pr-commits)"
			if got := w.reasons()["hello"]; (got == left) != (tt.runs == 0 && tt.calls == 1) {
				t.Errorf("the decision says %q", got)
			}
		})
	}
}

func TestALabelOnAStrangersPullRequestAsksForNoSecondApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t, helloFile("hello"))
	w.fork()
	w.edit(func(e *v1alpha1.GitEvent) { e.Spec.EventType = match.LabelEvent })
	w.git.canWrite = func(string) (bool, error) { return false, nil }
	w.settle(corev1.ConditionTrue)
	if e := w.event(); len(w.git.writes) != 0 || e.Status.Disposition != v1alpha1.DispositionIgnored || len(w.runs()) != 0 {
		t.Errorf("disposition %s, checks %v, want none", e.Status.Disposition, w.git.writes)
	}
}

func TestAnExpressionsErrorIsItsOwnPipelinesFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, helloFile("good"), annotated("bad", `on-cel-expression: 'event == "push" && nothing == 1'`))
	w.settle(corev1.ConditionTrue)
	if len(w.runs()) != 1 || len(w.git.checks) != 2 {
		t.Fatalf("%d runs, checks %v, want the good one's run and both checks", len(w.runs()), w.git.checks)
	}
	for _, check := range w.git.checks {
		if bad := strings.HasSuffix(check.Name, "/ bad"); bad != (check.Conclusion == status.Failure) || bad != strings.Contains(check.Text, "on-cel-expression: 1:20: undeclared reference to 'nothing'") {
			t.Errorf("%s: %s %s", check.Name, check.Conclusion, check.Text)
		}
	}
}

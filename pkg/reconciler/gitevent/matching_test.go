// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// annotated adds annotations ("name: value", without the common prefix) to a pipeline for pushes to
// main.
func annotated(name string, annotations ...string) git.File {
	file := helloFile(name)
	for _, a := range annotations {
		file.Data = []byte(strings.Replace(string(file.Data), "spec:\n", "    "+pipelinesascode.GroupName+"/"+a+"\nspec:\n",
			1))
	}
	return file
}

// noisy returns a pipeline with a description that does not compress, so that the status does not
// hold its plan.
func noisy(file git.File) git.File {
	noise := make([]byte, v1alpha1.MaxManifestBytes)
	_, _ = rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%32s", file.Path)))).Read(noise) // documented never to fail
	file.Data = []byte(strings.Replace(string(file.Data), "pipelineSpec:\n",
		"pipelineSpec:\n    description: "+base64.StdEncoding.EncodeToString(noise)+"\n", 1))
	return file
}

// setPayload stores the body of the event.
func (w *env) setPayload(body string) {
	w.t.Helper()
	packed, err := blob.Pack([]byte(body))
	w.must(err)
	ref, chunks := packed.Chunks(system, "push-1", "push-1")
	for _, chunk := range chunks {
		w.must(w.own.Tracker().Add(chunk))
	}
	w.edit(func(e *v1alpha1.GitEvent) { e.Spec.Payload = ref })
}

func (w *env) count(call string) int {
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

// reasons returns the reasons of the decisions by pipeline.
func (w *env) reasons() map[string]string {
	m := map[string]string{}
	for _, d := range w.event().Status.Plan.Decisions {
		m[d.Pipeline] = d.Reason
	}
	return m
}

func TestEventWithoutPipelinesLeavesNoTrace(t *testing.T) {
	t.Parallel()
	w := newEnv(t, annotated("docs", "on-path-change: 'docs/**'", "on-label: bug"),
		annotated("cel", `on-cel-expression: 'body.x == 1 && "docs/**".pathChanged() && event == "x"'`))
	w.git.changedErr, w.git.pullsErr = fault.Transientf("GitUnavailable", "502"), fault.Transientf("GitUnavailable", "502")
	w.settle(corev1.ConditionTrue)
	if e := w.event(); e.Status.Disposition != v1alpha1.DispositionIgnored || len(w.git.writes) != 0 {
		t.Errorf("disposition %s, checks %v: want none", e.Status.Disposition, w.git.writes)
	}
}

func TestTruncatedListOfChangesIsReported(t *testing.T) {
	t.Parallel()
	w := newEnv(t, annotated("go", "on-path-change: '*.go'"), annotated("docs", "on-path-change: 'docs/**'"),
		helloFile("hello"),
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

// Every process is killed after each reconcile.
func TestUnmatchedPipelinesShowSkippedChecks(t *testing.T) {
	t.Parallel()
	for name, files := range map[string][]git.File{
		"next to a run": {annotated("src", "on-path-change: 'src/**'"), helloFile("hello")},
		"alone":         {annotated("src", "on-path-change: 'src/**'")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, files...)
			w.forgets = true
			w.git.changed = git.Changes{Modified: []string{"README.md"}}
			w.repository = func(r *pacv1alpha1.Repository) {
				r.Spec.Settings = &pacv1alpha1.Settings{Unmatched: pacv1alpha1.UnmatchedPaths}
			}
			w.settle(corev1.ConditionTrue)
			outcome, disposition := "Succeeded", v1alpha1.DispositionRuns
			if len(files) == 1 {
				outcome, disposition = "Ignored: NoMatch", v1alpha1.DispositionIgnored
			}
			e := w.event()
			if !e.Settled() || e.Status.Outcome != outcome || e.Status.Disposition != disposition || e.MayRunAgain() ||
				len(w.runs()) != len(files)-1 || len(w.git.checks) != len(files) {
				t.Errorf("%+v, %d runs, checks %v", e.Status, len(w.runs()), w.git.checks)
			}
			skipped := 0
			for _, check := range w.git.checks {
				if !strings.HasSuffix(check.Name, "/ src") {
					continue
				}
				if skipped++; check.Conclusion != status.Skipped || !check.Yields ||
					!strings.Contains(check.Text, "on-path-change [src/**] matches no changed file (changed: README.md)") {
					t.Errorf("%+v", check)
				}
			}
			if skipped != 1 {
				t.Errorf("%d skipped checks, want 1", skipped)
			}
		})
	}
}

func TestSkipCIShowsOneSkippedCheck(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.git.skipCI = true
	w.settle(corev1.ConditionTrue)
	if len(w.git.checks) != 1 || w.git.checks["1"].Conclusion != status.Skipped ||
		w.git.checks["1"].Title != "CI Skipped" || len(w.runs()) != 0 {
		t.Errorf("checks %v, %d runs, want one skipped check and no run", w.git.checks, len(w.runs()))
	}
	if e := w.event(); e.Status.Disposition != v1alpha1.DispositionSkipped || e.Status.Plan.Reason != "SkipCI" {
		t.Errorf("%+v", e.Status)
	}
}

func TestLabelEventNeedsNoSecondApproval(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.fromFork()
	w.edit(func(e *v1alpha1.GitEvent) { e.Spec.EventType, e.Spec.Actor = match.LabelEvent, "stranger" })
	w.git.canWrite = func(string) (bool, error) { return false, nil }
	w.settle(corev1.ConditionTrue)
	if e := w.event(); len(w.git.writes) != 0 || e.Status.Disposition != v1alpha1.DispositionIgnored ||
		len(w.runs()) != 0 {
		t.Errorf("disposition %s, checks %v, want none", e.Status.Disposition, w.git.writes)
	}
}

func TestExpressionErrorFailsOnlyItsPipeline(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("good"), annotated("bad", `on-cel-expression: 'event == "push" && nothing == 1'`))
	w.settle(corev1.ConditionTrue)
	if len(w.runs()) != 1 || len(w.git.checks) != 2 {
		t.Fatalf("%d runs, checks %v, want the good one's run and both checks", len(w.runs()), w.git.checks)
	}
	for _, check := range w.git.checks {
		if bad := strings.HasSuffix(check.Name, "/ bad"); bad != (check.Conclusion == status.Failure) ||
			bad != strings.Contains(check.Text, "on-cel-expression: 1:20: nothing is not defined") {
			t.Errorf("%s: %s %s", check.Name, check.Conclusion, check.Text)
		}
	}
}

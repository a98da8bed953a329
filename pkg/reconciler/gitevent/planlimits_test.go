// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// large returns 13 pipelines that refer three times to a task of 900 KiB, whose text is in tree.
func large() (files []git.File, tree map[string]string) {
	for i := range 13 {
		files = append(files, annotated(fmt.Sprintf("p%02d", i), "task: tasks/large.yaml"))
		files[i].Data = []byte(strings.Replace(string(files[i].Data),
			"taskSpec:\n          steps: [{name: s, image: busybox, script: \"true\"}]",
			"taskRef: {name: large}\n      - {name: b, taskRef: {name: large}}\n      - {name: c, taskRef: {name: large}}", 1))
	}
	script := strings.Repeat("0123456789abcdef", 900<<10/16)
	return files, map[string]string{"tasks/large.yaml": "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: large}\nspec: {steps: [{name: s, image: busybox, script: '" + script + "'}]}\n"}
}

// C8: a plan that is too large to be stored is refused and reported on each check, and nothing of
// it is created.
func TestTooLargePlanIsReported(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.git.files, w.git.tree = large()
	w.git.files = append(w.git.files, annotated("docs", "on-label: bug"))
	w.settle(corev1.ConditionTrue)
	if len(w.runs()) != 0 || w.count("create eventpayloads") != 0 || w.count("create secrets") != 0 {
		t.Errorf("%d runs, %d payloads, %d secrets were created, want none", len(w.runs()), w.count("create eventpayloads"),
			w.count("create secrets"))
	}
	if len(w.git.checks) != 13 {
		t.Fatalf("%d checks, want one for each of the 13 pipelines", len(w.git.checks))
	}
	const said = "the 13 PipelineRuns that this event would start take 34.3 MiB with their tasks inlined, and at most 32 MiB are stored for one event"
	for _, check := range w.git.checks {
		if check.Conclusion != status.Failure || !strings.Contains(check.Text, said) ||
			!strings.Contains(check.Text, "The largest: p00 (2702 KiB), p01 (2702 KiB), p02 (2702 KiB)") {
			t.Fatalf("%s: %s %s", check.Name, check.Conclusion, check.Text)
		}
	}
	if !strings.HasPrefix(w.reasons()["p05"], said) || w.reasons()["docs"] == w.reasons()["p05"] {
		t.Errorf("the decisions say %q and %q", w.reasons()["p05"], w.reasons()["docs"])
	}
}

// Runs that were created before a too large part was decided go on.
func TestTooLargePlanStopsNoRun(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.git.files, w.git.tree = large()
	for i := range w.git.files {
		w.git.files[i].Data = []byte(strings.Replace(string(w.git.files[i].Data), "spec:\n",
			"    pipelinesascode.tekton.dev/on-path-change: '**'\nspec:\n", 1))
	}
	w.git.files = append(w.git.files, helloFile("hello"))
	w.git.changedErr = fault.Transientf("GitUnavailable", "502")
	_, _ = w.reconcile()
	if len(w.runs()) != 1 {
		t.Fatalf("%d runs, want that of hello", len(w.runs()))
	}
	w.git.changedErr, w.git.changed = nil, git.Changes{Modified: []string{"main.go"}}
	w.settle(corev1.ConditionTrue)
	got := w.conclusions()
	if len(got) != 14 || got["hello"] != status.Success || got["p00"] != status.Failure || len(w.runs()) != 1 ||
		w.event().Status.Disposition != v1alpha1.DispositionRuns {
		t.Errorf("%d runs, conclusions %v", len(w.runs()), got)
	}
}

// Tekton's types read a parameter without a value and cannot write it again: it must not fail the
// plan of the whole event.
func TestParameterWithoutValueFailsOnlyItsPipeline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"of the PipelineRun": {"spec:\n", "spec:\n  params: [{name: x}]\n"},
		"of a task":          {"- name: build\n", "- name: build\n        params: [{name: x}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"), helloFile("other"))
			w.git.files[0].Data = []byte(strings.Replace(string(w.git.files[0].Data), c[0], c[1], 1))
			w.settle(corev1.ConditionTrue)
			got := w.conclusions()
			if len(w.runs()) != 1 || got["hello"] != status.Failure || got["other"] != status.Success {
				t.Errorf("%d runs, conclusions %v", len(w.runs()), got)
			}
			for _, run := range w.event().Status.Runs {
				if run.Refused != nil && !strings.HasSuffix(run.Refused.Message,
					`params[0].value is missing: give it a value, "" for the empty text`) {
					t.Errorf("refused: %s", run.Refused.Message)
				}
			}
		})
	}
}

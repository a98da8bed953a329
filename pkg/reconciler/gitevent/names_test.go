// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// A duplicate name is reported where it matters: events that select none of the two do not fail.
func TestDuplicateNamesFail(t *testing.T) {
	t.Parallel()
	other := helloFile("hello")
	other.Path = ".tekton/other.yaml"
	w := newEnv(t, annotated("hello", "on-label: bug"), other, helloFile("good"))
	w.settle(corev1.ConditionTrue)
	if len(w.runs()) != 1 || len(w.git.checks) != 2 {
		t.Fatalf("%d runs, checks %v, want the good one's run and the failure of the one that is selected", len(w.runs()),
			w.git.checks)
	}
	for _, d := range w.event().Status.Plan.Decisions {
		if twice := strings.Contains(d.Reason,
			"is defined at .tekton/hello.yaml:1 too"); twice != (d.File == ".tekton/other.yaml") {
			t.Errorf("%s: %s", d.File, d.Reason)
		}
	}
}

// Two names that become equal when their placeholders are replaced would show one check. GitLab has
// one status per name, so the verdict of the run that reports first would be hidden.
func TestNamesThatBecomeEqualFail(t *testing.T) {
	t.Parallel()
	templated := helloFile("a")
	templated.Data = []byte(strings.Replace(string(templated.Data), "name: a\n", "name: 'build-{{ target_branch }}'\n", 1))
	w := newEnv(t, templated, helloFile("build-main"))
	_, _ = w.reconcile()
	runs := w.event().Status.Runs
	if len(runs) != 2 || runs[0].Refused != nil || runs[1].Refused == nil || runs[1].Refused.Reason != "DuplicateName" {
		t.Fatalf("%+v, want the second to be refused", runs)
	}
	if len(w.git.checks) != 2 || w.git.writes[0].Name == w.git.writes[1].Name {
		t.Errorf("checks %+v", w.git.writes)
	}
}

func TestCheckNameKeepsTheDashOfGenerateName(t *testing.T) {
	t.Parallel()
	file := helloFile("homelab")
	file.Data = []byte(strings.Replace(string(file.Data), "name: homelab", "generateName: homelab-", 1))
	w := newEnv(t, file)
	w.settle(corev1.ConditionTrue)
	run := w.runs()[0]
	if name := w.git.checks["1"].Name; len(w.git.checks) != 1 || name != "Pipelines as Code CI / homelab-" {
		t.Errorf("%d checks, the first called %q", len(w.git.checks), name)
	}
	if name := run.Annotations[pipelinesascode.OriginalPRName]; name != "homelab-" {
		t.Errorf("the annotation original-prname is %q", name)
	}
	if name := run.Labels[pipelinesascode.OriginalPRName]; name != "homelab" {
		t.Errorf("the label original-prname is %q, want what a label can hold of it", name)
	}
	if want := resources.RunName("push-1", ".tekton/homelab.yaml", 0, "homelab"); run.Name != want {
		t.Errorf("the PipelineRun is called %s, and another release called it %s", run.Name, want)
	}
}

func TestUnusableNameFailsOnlySelectingEvents(t *testing.T) {
	t.Parallel()
	for mistake, name := range map[string]string{"no name": "", "a number": "name: 12",
		"too long": "name: " + strings.Repeat("x", 254)} {
		for trigger, want := range map[string]int{"push": 1, "pull_request": 0} {
			t.Run(mistake+", for "+trigger, func(t *testing.T) {
				t.Parallel()
				file := helloFile("hello")
				file.Data = []byte(strings.NewReplacer("name: hello", name, "[push]", "["+trigger+"]").Replace(string(file.Data)))
				w := newEnv(t, file)
				w.settle(corev1.ConditionTrue)
				if len(w.git.checks) != want || len(w.runs()) != 0 {
					t.Errorf("checks %v and %d runs on a push, want %d checks and no run", w.git.checks, len(w.runs()), want)
				}
				if want == 1 && (w.git.checks["1"].Conclusion != status.Failure ||
					w.git.checks["1"].Name != "Pipelines as Code CI / .tekton/hello.yaml") {
					t.Errorf("the check is %+v", w.git.checks["1"])
				}
			})
		}
	}
}

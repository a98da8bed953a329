// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/resources"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// A name that is given twice is told where it matters: events that select none of the two do not fail for it.
func TestANameThatIsGivenTwice(t *testing.T) {
	t.Parallel()
	other := helloFile("hello")
	other.Path = ".tekton/other.yaml"
	w := newWorld(t, annotated("hello", "on-label: bug"), other, helloFile("good"))
	w.settle(corev1.ConditionTrue)
	if len(w.runs()) != 1 || len(w.git.checks) != 2 {
		t.Fatalf("%d runs, checks %v, want the good one's run and the failure of the one that is selected", len(w.runs()), w.git.checks)
	}
	for _, d := range w.event().Status.Plan.Decisions {
		if twice := strings.Contains(d.Reason, "is defined at .tekton/hello.yaml:1 too"); twice != (d.File == ".tekton/other.yaml") {
			t.Errorf("%s: %s", d.File, d.Reason)
		}
	}
}

// Two names that become one when their placeholders are replaced would show one check: GitLab has one status of a name,
// and the verdict of the run that reports first would be hidden by the other's.
func TestNamesThatBecomeOne(t *testing.T) {
	t.Parallel()
	templated := helloFile("a")
	templated.Data = []byte(strings.Replace(string(templated.Data), "name: a\n", "name: 'build-{{ target_branch }}'\n", 1))
	w := newWorld(t, templated, helloFile("build-main"))
	_, _ = w.reconcile()
	runs := w.event().Status.Runs
	if len(runs) != 2 || runs[0].Refused != nil || runs[1].Refused == nil || runs[1].Refused.Reason != "DuplicateName" {
		t.Fatalf("%+v, want the second to be refused", runs)
	}
	if len(w.git.checks) != 2 || w.git.writes[0].Name == w.git.writes[1].Name {
		t.Errorf("checks %+v", w.git.writes)
	}
}

func TestACheckIsNamedAsPaCNamesItWithTheDashOfAGenerateName(t *testing.T) {
	t.Parallel()
	file := helloFile("homelab")
	file.Data = []byte(strings.Replace(string(file.Data), "name: homelab", "generateName: homelab-", 1))
	w := newWorld(t, file)
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

func TestAPipelineWithoutAUsableNameFailsOnlyTheEventsThatSelectIt(t *testing.T) {
	t.Parallel()
	for mistake, name := range map[string]string{"no name": "", "a number": "name: 12", "too long": "name: " + strings.Repeat("x", 254)} {
		for trigger, want := range map[string]int{"push": 1, "pull_request": 0} {
			t.Run(mistake+", for "+trigger, func(t *testing.T) {
				t.Parallel()
				file := helloFile("hello")
				file.Data = []byte(strings.NewReplacer("name: hello", name, "[push]", "["+trigger+"]").Replace(string(file.Data)))
				w := newWorld(t, file)
				w.settle(corev1.ConditionTrue)
				if len(w.git.checks) != want || len(w.runs()) != 0 {
					t.Errorf("checks %v and %d runs on a push, want %d checks and no run", w.git.checks, len(w.runs()), want)
				}
				if want == 1 && (w.git.checks["1"].Conclusion != status.Failure || w.git.checks["1"].Name != "Pipelines as Code CI / .tekton/hello.yaml") {
					t.Errorf("the check is %+v", w.git.checks["1"])
				}
			})
		}
	}
}

func TestTheCheckOfARefusedPipelineHasTheNameThatItsRunWouldHave(t *testing.T) {
	t.Parallel()
	refused := "on-target-branch: '[{]'"
	tests := map[string]struct{ name, want string }{
		"a variable":                            {"tests-pr-{{pull_request_number}}", "tests-pr-3"},
		"a generateName":                        {"tests-{{ target_branch }}-", "tests-main-"},
		"what the payload says":                 {"tests-{{ body.number }}", "tests-3"},
		"nothing that anybody knows":            {"tests-{{ matrix }}-{{ revision }}", "tests-{{ matrix }}-" + sha},
		"what the payload does not say":         {"tests-{{ body.nothing }}", "tests-{{ body.nothing }}"},
		"what cannot be asked for now":          {"{{ sender }}-{{ files.all }}", "dev-{{ files.all }}"},
		"a value that is too long for any name": {"{{ body.long }}", "{{ body.long }}"},
		"a value that is too long once written": {"{{ body.escaped }}", "{{ body.escaped }}"},
		"the name of another one":               {"other-{{ pull_request_number }}", ".tekton/refused.yaml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, other := annotated("NAME", refused), annotated("other-3", refused)
			file.Path = ".tekton/refused.yaml"
			file.Data = []byte(strings.NewReplacer("name: NAME", "name: '"+tt.name+"'").Replace(strings.Replace(string(file.Data), `"[main]"`, `"[x]"`, 1)))
			w := newWorld(t, other, file)
			w.git.changedErr = fault.Transientf("GitUnavailable", "502")
			w.payload(`{"number": 3, "long": "` + strings.Repeat("x", 300) + `", "escaped": "` + strings.Repeat("<", 200) + `"}`)
			w.edit(func(e *v1alpha1.GitEvent) {
				e.Spec.PullRequest = &v1alpha1.PullRequest{Number: 3, Author: "dev", HeadProjectID: 5}
			})
			w.settle(corev1.ConditionTrue)
			for _, check := range w.git.checks {
				if check.Name != "Pipelines as Code CI / other-3" && check.Name != "Pipelines as Code CI / "+tt.want {
					t.Errorf("the check is called %q, want %q", check.Name, tt.want)
				}
			}
			if len(w.git.checks) != 2 {
				t.Errorf("%d checks, want 2", len(w.git.checks))
			}
		})
	}
}

func TestBranchesOfAPushAreWrittenAsPaCWritesThemByEachPipelinesOwnExpression(t *testing.T) {
	t.Parallel()
	expression := func(name, text string) git.File { return annotated(name, "on-cel-expression: '"+text+"'") }
	w := newWorld(t, // the first one's expression changes what PaC writes for all others
		expression("both", `target_branch == "main" && source_branch == "main"`), expression("event", `event == "push"`), helloFile("listed"),
		expression("prefix", `target_branch == "main" || target_branch == "refs/heads/main"`), expression("source", `source_branch.startsWith("ma")`),
		expression("field", `event == "push" || body.target_branch == "main"`), expression("target", `[target_branch].exists(b, b == "main")`))
	w.settle(corev1.ConditionTrue)
	const short, long = "main", "refs/heads/main"
	want := map[string][2]string{
		"both": {short, short}, "event": {long, long}, "listed": {long, long}, "prefix": {long, long}, "source": {long, short}, "field": {long, long},
		"target": {short, long},
	}
	got := map[string][2]string{}
	for _, run := range w.runs() {
		a := run.Annotations
		got[a[pipelinesascode.OriginalPRName]] = [2]string{a[pipelinesascode.Branch], a[pipelinesascode.SourceBranch]}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("annotations branch and source-branch, -want +got:\n%s", diff)
	}
}

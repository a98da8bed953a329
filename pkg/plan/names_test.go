// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

func TestRefusedPipelineKeepsCheckName(t *testing.T) {
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
			wrong := func(file git.File) git.File {
				return edited(file, `    pipelinesascode.tekton.dev/on-target-branch: "[main]"`+"\n", "")
			}
			file := edited(wrong(pipeline("NAME", refused)), "name: NAME", "name: '"+tt.name+"'")
			file.Path = ".tekton/refused.yaml"
			w := &env{files: []git.File{wrong(pipeline("other-3", refused)), file}, changedErr: down(),
				payload: `{"number": 3, "long": "` + strings.Repeat("x", 300) + `", "escaped": "` + strings.Repeat("<", 200) + `"}`}
			in := push()
			in.Event.Spec.PullRequest = &v1alpha1.PullRequest{Number: 3, Author: "dev", HeadProjectID: 5}
			made := w.make(t, in)
			if len(made.Runs) != 2 || made.Wait != nil {
				t.Fatalf("%+v, waits for %v, want two refusals", made.Runs, made.Wait)
			}
			if other, run := made.Runs[0], made.Runs[1]; other.Pipeline != "other-3" || run.Pipeline != tt.want ||
				run.Refused == nil {
				t.Errorf("the checks are called %q and %q, want %q", other.Pipeline, run.Pipeline, tt.want)
			}
		})
	}
}

func TestBranchLabelsFollowEachPipelinesExpression(t *testing.T) {
	t.Parallel()
	expression := func(name, text string) git.File { return pipeline(name, "on-cel-expression: '"+text+"'") }
	w := &env{files: []git.File{ // the first one's expression changes what PaC writes for all others
		expression("both", `target_branch == "main" && source_branch == "main"`), expression("event", `event == "push"`),
		pipeline("listed"),
		expression("prefix", `target_branch == "main" || target_branch == "refs/heads/main"`),
		expression("source", `source_branch.startsWith("ma")`),
		expression("field", `event == "push" || body.target_branch == "main"`),
		expression("target", `[target_branch].exists(b, b == "main")`),
	}}
	const short, long = "main", "refs/heads/main"
	want := map[string][2]string{
		"both": {short, short}, "event": {long, long}, "listed": {long, long}, "prefix": {long, long},
		"source": {long, short}, "field": {long, long},
		"target": {short, long},
	}
	got := map[string][2]string{}
	for _, run := range w.make(t, push()).Runs {
		a := decoded(t, run).Annotations
		got[a[pipelinesascode.OriginalPRName]] = [2]string{a[pipelinesascode.Branch], a[pipelinesascode.SourceBranch]}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("annotations branch and source-branch, -want +got:\n%s", diff)
	}
}

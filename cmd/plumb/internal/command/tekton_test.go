// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
)

// started is a PipelineRun for the pull request of the branch, with a spec that begins on line 8.
func started(name, spec string) string {
	text, _, _ := strings.Cut(run(name, "on-event: pull_request", "on-target-branch: main"), "spec:")
	return text + "spec:\n" + spec
}

const oneTask = "  pipelineSpec: {tasks: [{name: t, taskSpec: {steps: [{name: s, image: busybox}]}}]}\n"

// What Tekton would refuse does not start, with the place and an exit code that CI sees.
func TestPlanOfWhatTektonRefuses(t *testing.T) {
	for name, test := range map[string]struct{ files, want string }{
		"a misspelt pipelineSpec": {started("a", strings.Replace(oneTask, "pipelineSpec", "pipelineSpecc", 1)),
			".tekton/a.yaml:8:1: error: Tekton would refuse it: expected exactly one, got neither: spec.pipelineRef, spec.pipelineSpec\n 8 | spec:\n   | ^\n" +
				".tekton/a.yaml:9:3: warning: the field spec.pipelineSpecc does not exist, so it is ignored\n"},
		"a task without steps": {started("a", "  pipelineSpec:\n    tasks:\n    - name: t\n      taskSpec: {params: []}\n"),
			".tekton/a.yaml:12:7: error: Tekton would refuse it: missing field(s): spec.pipelineSpec.tasks[0].taskSpec.steps\n"},
		"runAfter of nothing": {started("a",
			"  pipelineSpec:\n    tasks:\n    - {name: t, runAfter: [nothere], taskSpec: {steps: [{name: s, image: i}]}}\n"),
			".tekton/a.yaml:10:5: error: Tekton would refuse it: invalid value: couldn't add link between t and nothere: task t depends on nothere but nothere wasn't present in Pipeline: spec.pipelineSpec.tasks\n"},
		"an impossible name of a task": {started("a",
			"  pipelineSpec:\n    tasks:\n    - taskSpec: {steps: [{name: s, image: i}]}\n      name: Build it\n"),
			`.tekton/a.yaml:12:7: error: Tekton would refuse it: invalid value "Build it": spec.pipelineSpec.tasks[0].name`},
		"a Task of its own": {started("a", "  pipelineSpec:\n    tasks:\n    - {name: t, taskRef: {name: own}}\n") +
			"---\napiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: own}\nspec: {step: []}\n",
			".tekton/a.yaml:11:17: error: Tekton would refuse it: missing field(s): spec.pipelineSpec.tasks[0].taskSpec.steps\n"},
		"v1beta1": {strings.Replace(started("a", "  pipelineSpec: {tasks: [{name: t, taskSpec: {}}]}\n"), "tekton.dev/v1",
			"tekton.dev/v1beta1", 1),
			"Tekton would refuse it: missing field(s): spec.pipelineSpec.tasks[0].taskSpec.steps\n"},
		"a label that Kubernetes refuses": {strings.Replace(started("a", oneTask), "metadata:\n",
			"metadata:\n  labels: {team: a b}\n", 1),
			`.tekton/a.yaml:4:3: error: Kubernetes would refuse it: metadata.labels: Invalid value: "a b"`},
	} {
		t.Run(name, func(t *testing.T) {
			repo := topic(t, map[string]string{".tekton/a.yaml": test.files})
			for _, form := range outputs() {
				got := plumb(t.Context(), repo.Dir, "", "plan", "-o", form)
				if got.code != exitAuthor || !strings.Contains(got.said, test.want) {
					t.Errorf("-o %s: exit %d: %s\nwant %q", form, got.code, got.said, test.want)
				}
			}
			if got := plumb(t.Context(), repo.Dir, "", "plan", "--must-start=a"); !strings.Contains(got.said,
				"plumb: a would not start: ") || !strings.Contains(got.out, "\na         no      ") {
				t.Errorf("got %s%s", got.out, got.said)
			}
			if got := plumb(t.Context(), repo.Dir, "", "plan", "--push=main"); got.code != exitOK {
				t.Errorf("an event that it is not for: exit %d: %s", got.code, got.said)
			}
		})
	}
}

// What a cluster may allow, and what is the author's own name, is not refused.
func TestPlanOfWhatTektonMayAllow(t *testing.T) {
	files := map[string]string{
		"matrix":   "  pipelineSpec: {tasks: [{name: t, matrix: {params: [{name: p, value: [a, b]}]}, taskRef: {resolver: git, params: [{name: url, value: x}]}}]}\n",
		"nested":   "  pipelineSpec: {tasks: [{name: t, pipelineRef: {resolver: hub, params: [{name: name, value: x}]}}]}\n",
		"resolved": "  pipelineRef: {resolver: bundles, params: [{name: bundle, value: x}]}\n",
		// v1 has it elsewhere: a warning
		"secret": "  params: [{name: t, value: \"{{ token }}\"}]\n  serviceAccountName: x\n" + oneTask,
		strings.Repeat("a-very-long-name-", 10) + "end": oneTask,
		"Build_It!": oneTask,
	}
	repo := scratch.New(t, map[string]string{"README.md": "x"})
	repo.Git("checkout", "--quiet", "-b", "topic")
	var args []string
	for name, spec := range files {
		repo.Write(map[string]string{".tekton/" + strings.Trim(name, "!") + ".yaml": started(name, spec)})
		args = append(args, "--must-start="+name)
	}
	repo.Write(map[string]string{
		"repository.yaml": "apiVersion: pipelinesascode.tekton.dev/v1alpha1\nkind: Repository\nmetadata: {name: app}\n" +
			"spec: {url: https://github.com/acme/app, params: [{name: token, secret_ref: {name: vault, key: token}}]}\n"})
	got := plumb(t.Context(), repo.Dir, "", append([]string{"plan", "--repository=repository.yaml"}, args...)...)
	if got.code != exitOK || strings.Count(got.said, "warning") != 1 || !strings.HasPrefix(got.said,
		".tekton/secret.yaml:10:3: warning: the field spec.serviceAccountName does not exist, so it is ignored\n") {
		t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
	}
}

// The value of a secret is not known here: what depends on it is not refused.
func TestTektonIsNotAskedAboutSecrets(t *testing.T) {
	repo := topic(t, map[string]string{
		".tekton/a.yaml": started(
			"a",
			"  pipelineSpec: {tasks: [{name: \"{{ token }}\", taskSpec: {steps: [{name: s, image: i, onError: \"{{ token }}\"}]}}]}\n",
		),
		".tekton/b.yaml": started("b", "  pipelineSpec: {tasks: [{name: \"{{ token }}\", taskSpec: {}}]}\n"),
		"repository.yaml": "apiVersion: pipelinesascode.tekton.dev/v1alpha1\nkind: Repository\nmetadata: {name: app}\n" +
			"spec: {url: https://github.com/acme/app, params: [{name: token, secret_ref: {name: vault, key: token}}]}\n",
	})
	got := plumb(t.Context(), repo.Dir, "", "plan", "--repository=repository.yaml")
	if got.code != exitAuthor || !strings.Contains(got.out, "\na         yes ") ||
		!strings.Contains(got.out, "\nb         no      error, see above") ||
		!strings.Contains(got.said, "error: Tekton would refuse it: missing field(s)") {
		t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
	}
}

func TestWarningsAsJSON(t *testing.T) {
	repo := topic(t, map[string]string{".tekton/a.yaml": started("a", "  timeout: 1h\n"+oneTask)})
	got := plumb(t.Context(), repo.Dir, "", "plan", "-o=json")
	var read struct{ Warnings []map[string]any }
	must(t, json.Unmarshal([]byte(got.out), &read))
	want := []map[string]any{{"file": ".tekton/a.yaml", "line": 9.0, "column": 3.0, "reason": "UnknownField",
		"message": "the field spec.timeout does not exist, so it is ignored"}}
	if diff := cmp.Diff(want, read.Warnings); diff != "" || got.code != exitOK {
		t.Errorf("exit %d, warnings (-want +got):\n%s", got.code, diff)
	}
}

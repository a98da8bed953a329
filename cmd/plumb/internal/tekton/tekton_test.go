// SPDX-License-Identifier: Apache-2.0

package tekton

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"sigs.k8s.io/yaml"
)

// of is a PipelineRun with a spec and labels.
func of(t *testing.T, spec, labels string) *pipelinev1.PipelineRun {
	t.Helper()
	run := &pipelinev1.PipelineRun{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: a-1, labels: {"+labels+"}}\nspec: "+spec), run); err != nil {
		t.Fatal(err)
	}
	return run
}

// tasks is a spec with the tasks of a list.
func tasks(list string) string { return "{pipelineSpec: {tasks: [" + list + "]}}" }

const task = "{name: a, taskSpec: {steps: [{name: s, image: i}]}}"

func TestJudgeRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ spec, labels, message, path string }{
		"no pipeline": {
			"{}", "",
			"Tekton would refuse it: expected exactly one, got neither: spec.pipelineRef, spec.pipelineSpec",
			"spec.pipelineRef",
		},
		"a pipeline without tasks": {
			"{pipelineSpec: {}}", "",
			"expected at least one, got none: spec.pipelineSpec.description",
			"spec.pipelineSpec.description",
		},
		"a task without steps": {
			tasks("{name: a, taskSpec: {}}"), "",
			"missing field(s): spec.pipelineSpec.tasks[0].taskSpec.steps",
			"spec.pipelineSpec.tasks[0].taskSpec.steps",
		},
		"runAfter of nothing": {
			tasks("{name: a, runAfter: [b], taskSpec: {steps: [{name: s, image: i}]}}"), "",
			"task a depends on b but b wasn't present in Pipeline",
			"spec.pipelineSpec.tasks",
		},
		"a task's impossible name": {
			tasks(`{name: "Build it", taskSpec: {steps: [{name: s, image: i}]}}`), "",
			`invalid value "Build it": spec.pipelineSpec.tasks[0].name`,
			"spec.pipelineSpec.tasks[0].name",
		},
		"two tasks of a name": {
			tasks(task + "," + task), "",
			"expected exactly one, got both: spec.pipelineSpec.tasks[1].name",
			"spec.pipelineSpec.tasks[1].name",
		},
		"a task that is nothing": {
			tasks("{name: a}"), "",
			"expected exactly one, got neither: spec.pipelineSpec.tasks[0].pipelineRef",
			"spec.pipelineSpec.tasks[0].pipelineRef",
		},
		"a reference without a name": {
			tasks("{name: a, taskRef: {}}"), "",
			"missing field(s): spec.pipelineSpec.tasks[0].taskRef.name",
			"spec.pipelineSpec.tasks[0].taskRef.name",
		},
		"a param that nobody declares": {
			tasks(`{name: a, params: [{name: p, value: $(params.x)}], taskSpec: {params: [{name: p}], steps: [{name: s, image: i}]}}`), "",
			`non-existent variable in "$(params.x)"`,
			"spec[0].params[p]",
		},
		"tasks that outlast the run": {
			`{timeouts: {pipeline: 1h, tasks: 2h}, pipelineSpec: {tasks: [` + task + `]}}`, "",
			"should be <= pipeline duration",
			"spec.timeouts.tasks",
		},
		"a status that there is not": {
			`{status: Cancel, pipelineSpec: {tasks: [` + task + `]}}`, "",
			"spec.status",
			"spec.status",
		},
		"tasks without an end, and finally": {
			`{timeouts: {tasks: "0", finally: 10m}, pipelineSpec: {tasks: [` + task + `]}}`, "",
			"0s (no timeout) should be <= pipeline duration",
			"spec.timeouts.tasks",
		},
		"a param that makes Tekton's webhook panic": {
			`{params: [{name: p, value: x}], pipelineSpec: {tasks: [{name: a, params: [{name: p, value: {k: v}}], taskRef: {name: t}}]}}`, "",
			"Tekton would refuse it: its webhook fails (assignment to entry in nil map)",
			"",
		},
		"a label's impossible value": {
			tasks(task), "team: a b",
			`Kubernetes would refuse it: metadata.labels: Invalid value: "a b"`,
			"metadata.labels",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Judge(t.Context(), of(t, test.spec, test.labels))
			if err != nil || got == nil || !strings.Contains(got.Message, test.message) || got.Path != test.path ||
				strings.Contains(got.Message, "\n") {
				t.Errorf("got %+v, %v, want %q at %s", got, err, test.message, test.path)
			}
		})
	}
}

// Judge returns for every input, however wrong it is.
func TestJudgeOfNothing(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{
		"null", "{pipelineRef: {}}", "{pipelineSpec: {tasks: [null]}}", tasks("{}"), tasks("{taskSpec: {steps: [null]}}"),
		"{pipelineSpec: {tasks: null, finally: [null], params: [null], workspaces: [null], results: [null]}}",
		tasks("{name: a, when: [null], params: [null], workspaces: [null], matrix: {}, taskSpec: null}"),
		tasks("{name: a, matrix: {params: [null], include: [null]}, taskRef: {}}"),
		tasks("{name: a, taskSpec: {steps: [{}], sidecars: [null], volumes: [null], params: [null], results: [null]}}"),
		tasks("{name: a, pipelineSpec: {tasks: [null]}}"),
		"{taskRunSpecs: [null], params: [null], workspaces: [null], timeouts: {}}",
	} {
		if _, err := Judge(t.Context(), of(t, spec, "")); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// Judge allows everything that some cluster may allow.
func TestJudgeAllows(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]string{
		"a task":                    tasks(task),
		"a Pipeline of the cluster": "{pipelineRef: {name: deploy}}",
		"a Task of the cluster":     tasks("{name: a, taskRef: {name: deploy}, params: [{name: p, value: x}]}"),
		"a Pipeline of a resolver":  "{pipelineRef: {resolver: git, params: [{name: url, value: x}]}}",
		"a Task of a resolver":      tasks("{name: a, taskRef: {resolver: bundles, params: [{name: bundle, value: x}]}}"),
		"the default resolver":      "{pipelineRef: {params: [{name: url, value: x}]}}",
		"a Task of that": "{pipelineSpec: {tasks: [" + task +
			"], finally: [{name: b, taskRef: {params: [{name: url, value: x}]}}]}}",
		"the short form of one": tasks("{name: a, taskRef: {name: 'https://x.example/t.yaml', resolver: http}}"),
		"a matrix":              tasks("{name: a, matrix: {params: [{name: p, value: [x, y]}], include: [{name: b, params: [{name: q, value: z}]}]}, taskRef: {name: t}}"),
		"a large matrix": tasks("{name: a, matrix: {params: [{name: p, value: [" + strings.Repeat("x, ", 500) +
			"y]}]}, taskRef: {name: t}}"),
		"a StepAction": tasks(
			"{name: a, taskSpec: {steps: [{name: s, ref: {name: action}, params: [{name: p, value: x}]}]}}"),
		"a StepAction of the default": tasks(
			"{name: a, taskSpec: {steps: [{name: s, ref: {params: [{name: url, value: x}]}}]}}"),
		"a StepAction of a resolver": tasks(
			"{name: a, taskSpec: {steps: [{name: s, ref: {resolver: git, params: [{name: url, value: x}]}}]}}"),
		"a pipeline in a pipeline": tasks("{name: a, pipelineSpec: {tasks: [" + task + "]}}"),
		"one that is referred to":  tasks("{name: a, pipelineRef: {name: deploy}}"),
		"a condition in CEL":       tasks(`{name: a, when: [{cel: "'x' == 'x'"}], taskRef: {name: t}}`),
		"an enum": "{pipelineSpec: {params: [{name: p, type: string, enum: [a, b]}], tasks: [" + task +
			"]}, params: [{name: p, value: a}]}",
		"what a step prints": tasks("{name: a, taskSpec: {steps: [{name: s, image: i, stdoutConfig: {path: /x}}]}}"),
		"artifacts": tasks(
			`{name: a, taskSpec: {steps: [{name: s, image: i, script: "echo $(step.artifacts.path)"}]}}`),
		"an error that is no failure": tasks("{name: a, onError: continue, taskRef: {name: t}}"),
		"a custom task":               tasks("{name: a, taskRef: {apiVersion: example.dev/v1, kind: Approval, name: x}}"),
		"one that is written here": tasks(
			"{name: a, taskSpec: {apiVersion: example.dev/v1, kind: Approval, spec: {any: thing}}}"),
		"tasks that take long": "{timeouts: {tasks: 5h}, pipelineSpec: {tasks: [" + task + "]}}",
		"tasks, and finally":   "{timeouts: {tasks: 30m, finally: 10m}, pipelineSpec: {tasks: [" + task + "]}}",
		"tasks without an end": "{timeouts: {tasks: '0'}, pipelineSpec: {tasks: [" + task + "]}}",
		"a run without an end": "{timeouts: {pipeline: '0', tasks: 5h}, pipelineSpec: {tasks: [" + task + "]}}",
		"a task run that takes long": "{taskRunSpecs: [{pipelineTaskName: a, timeout: 5h}], pipelineSpec: {tasks: [" + task +
			"]}}",
		"a run that begins later":    "{status: PipelineRunPending, pipelineSpec: {tasks: [" + task + "]}}",
		"a param that is propagated": `{params: [{name: p, value: x}], pipelineSpec: {tasks: [{name: a, taskSpec: {steps: [{name: s, image: i, script: "echo $(params.p)"}]}}]}}`,
		"another controller's run":   "{managedBy: kueue.x-k8s.io/multikueue, pipelineSpec: {tasks: [" + task + "]}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := of(t, spec, "a: b")
			before := run.DeepCopy()
			if got, err := Judge(t.Context(), run); err != nil || got != nil {
				t.Errorf("got %+v, %v", got, err)
			}
			if diff := cmp.Diff(before, run); diff != "" {
				t.Errorf("the run was changed: %s", diff)
			}
		})
	}
}

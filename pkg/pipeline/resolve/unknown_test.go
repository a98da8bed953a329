// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

// Each document has fields that its kind has not, and fields that only look so.
const misspelt = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {name: a, anotations: {x: y}, annotations: {pipelinesascode.tekton.dev/any-key: x}, labels: {any: x}}
spec:
  timeout: 1h
  worksapces: [{name: w}]
  Params: [{name: p, value: {any: thing}}, {name: q, value: [x], valu: y}]
  taskRunTemplate: {podTemplate: {nodeSelector: {any: x}, nodeSelektor: {any: x}}}
  pipelineSpec:
    tasks:
      - {name: custom, taskSpec: {apiVersion: example.dev/v1, kind: Other, spec: {any: thing}}}
      - {name: own, runafter: [custom], run_after: [custom], taskSpec: {steps: [{name: s, image: i, envs: []}], volumes: [{name: v, emptyDir: {size: 1}}], metadata: {labels: {any: x}}}}
      - {name: filled, when: {{ body.when }}, taskSpec: {{ spec }}}
---
apiVersion: tekton.dev/v1beta1
kind: PipelineRun
metadata: {name: b}
spec: {timeout: 1h, timeoutt: 1h, serviceAccountName: x, pipelineRef: {name: p, bundle: x}}
---
apiVersion: tekton.dev/v1
kind: Pipeline
metadata: {name: p}
spec: {taks: [], tasks: [{name: a, taskReff: {name: t}}]}
---
apiVersion: tekton.dev/v1
kind: Task
metadata: {name: t}
specc: {}
spec: {steps: [{name: s, image: i, securityContext: {runAsUser: 1, runAsUsr: 1}}]}
---
apiVersion: example.dev/v1
kind: Task
spec: {any: thing}
`

func TestUnknownFieldsAreNamed(t *testing.T) {
	t.Parallel()
	set := Load([]git.File{{Path: ".tekton/a.yaml", Data: []byte(misspelt)}})
	var got []string
	for _, field := range set.Unknown() {
		got = append(got, field.String())
	}
	want := []string{
		".tekton/a.yaml:1: metadata.anotations", ".tekton/a.yaml:1: spec.Params[1].valu",
		".tekton/a.yaml:1: spec.pipelineSpec.tasks[1].run_after",
		".tekton/a.yaml:1: spec.pipelineSpec.tasks[1].taskSpec.steps[0].envs",
		".tekton/a.yaml:1: spec.pipelineSpec.tasks[1].taskSpec.volumes[0].emptyDir.size",
		".tekton/a.yaml:1: spec.taskRunTemplate.podTemplate.nodeSelektor", ".tekton/a.yaml:1: spec.timeout",
		".tekton/a.yaml:1: spec.worksapces",
		".tekton/a.yaml:15: spec.timeoutt",
		".tekton/a.yaml:20: spec.taks", ".tekton/a.yaml:20: spec.tasks[0].taskReff",
		".tekton/a.yaml:25: spec.steps[0].securityContext.runAsUsr", ".tekton/a.yaml:25: specc",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unknown fields (-want +got):\n%s", diff)
	}
	for _, def := range set.Definitions() {
		if got := set.UnknownIn(def); def.Err != nil || len(got) != map[string]int{"a": 8, "b": 1}[def.Name] {
			t.Errorf("%s: %v, %v", def.Name, got, def.Err)
		}
	}
}

// What follows from the case of letters is what the decoder makes of it, and a document with many
// mistakes names some.
func TestUnknownFieldsAreBounded(t *testing.T) {
	t.Parallel()
	text := "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: a}\nspec:\n"
	for i := range 100 {
		text += "  x" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + ": 1\n"
	}
	if got := Load([]git.File{{Path: ".tekton/a.yaml", Data: []byte(text)}}).Unknown(); len(got) != maxUnknown {
		t.Errorf("%d fields are named", len(got))
	}
}

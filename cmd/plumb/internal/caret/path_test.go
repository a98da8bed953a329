// SPDX-License-Identifier: Apache-2.0

package caret

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

const nested = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {name: a, labels: {app.example.com/x: "a b"}}
spec:
  pipelineSpec:
    tasks:
    - &first
      name: {{ name }}
      taskRef: {name: b}
    - *first
    - {name: own, taskSpec: {stepps: [{name: s}]}}
---
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {name: b}
spec: {pipelineRef: {name: p}}
`

// Field returns the place of the field's key, or of the nearest part of the path that exists.
func TestField(t *testing.T) {
	sources := Read([]git.File{{Path: "a.yaml", Data: []byte(nested)}})
	for path, want := range map[string]Place{
		"spec":                                                 {"a.yaml", 4, 1},
		"spec.pipelineSpec.tasks":                              {"a.yaml", 6, 5},
		"spec.pipelineSpec.tasks[0]":                           {"a.yaml", 7, 7},
		"spec.pipelineSpec.tasks[0].name":                      {"a.yaml", 8, 7},
		"spec.pipelineSpec.TASKS[0].name":                      {"a.yaml", 8, 7},
		"spec.pipelineSpec.tasks[1].name":                      {"a.yaml", 8, 7},
		"spec.pipelineSpec.tasks[2].name":                      {"a.yaml", 11, 8},
		"spec.pipelineSpec.tasks[9].name":                      {"a.yaml", 6, 5},
		"spec.pipelineSpec.tasks[x].name":                      {"a.yaml", 6, 5},
		"spec.pipelineSpec.tasks.x.params":                     {"a.yaml", 6, 5},
		"spec.pipelineSpec.tasks[0].taskSpec.steps[0].image":   {"a.yaml", 9, 7},
		"spec.pipelineSpec.tasks[2].taskSpec.stepps[0].name.x": {"a.yaml", 11, 40},
		"spec.pipelineSpec.tasks[2].taskSpec.steps":            {"a.yaml", 11, 19},
		"metadata.labels.app.example.com/x":                    {"a.yaml", 3, 30},
		"metadata.labels":                                      {"a.yaml", 3, 21},
		"nothing.like.it":                                      {"a.yaml", 1, 1},
		"":                                                     {"a.yaml", 1, 1},
		"spec[0].params[p]":                                    {"a.yaml", 4, 1},
	} {
		if got := sources.Field("a.yaml", 0, path); got != want {
			t.Errorf("%s is at %v, want %v", path, got, want)
		}
	}
	if got, want := sources.Field("a.yaml", 1, "spec.pipelineSpec.tasks[0].name"), (Place{"a.yaml", 16, 8}); got != want {
		t.Errorf("of what is inlined: %v, want %v", got, want)
	}
	if got, want := sources.Field("b.yaml", 0, "spec"), (Place{"b.yaml", 1, 0}); got != want {
		t.Errorf("of a file that was not read: %v, want %v", got, want)
	}
	if got := Read([]git.File{{Path: "a.yaml", Data: []byte("a: b: c\n")}}).Field("a.yaml", 0,
		"a"); got != (Place{"a.yaml", 1, 1}) {
		t.Errorf("of what is no YAML: %v", got)
	}
}

// The place of a field from a merge key is where its value is.
func TestFieldOfAMergeKey(t *testing.T) {
	const merging = `apiVersion: tekton.dev/v1
x-task: &base
  taskSpec: {steps: [{name: S_S}]}
x-self: &self {<<: *self}
spec:
  <<: {timeout: 1h}
  pipelineSpec:
    tasks:
    - {<<: *base, name: a}
    - {<<: [{retries: 1}, *base], name: b}
    - {<<: *self, name: c}
`
	sources := Read([]git.File{{Path: "a.yaml", Data: []byte(merging)}})
	for path, want := range map[string]Place{
		"spec.timeout": {"a.yaml", 6, 17},
		"spec.pipelineSpec.tasks[0].taskSpec.steps[0].name": {"a.yaml", 3, 23},
		"spec.pipelineSpec.tasks[1].taskSpec.steps":         {"a.yaml", 3, 14},
		"spec.pipelineSpec.tasks[1].retries":                {"a.yaml", 10, 23},
		"spec.pipelineSpec.tasks[2].taskSpec.steps":         {"a.yaml", 11, 7},
		"spec.pipelineSpec.tasks[0].name":                   {"a.yaml", 9, 19},
	} {
		if got := sources.FieldAt("a.yaml", 1, path); got != want {
			t.Errorf("%s is at %v, want %v", path, got, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// A Task without placeholders is read once for all PipelineRuns of an event; each gets a copy of
// its own, and one with placeholders is filled for each.
func TestTasksAreSharedOnlyIfTheyAreTheSame(t *testing.T) {
	t.Parallel()
	const definitions = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {name: a}
spec:
  pipelineSpec:
    tasks:
      - {name: one, taskRef: {name: plain}}
      - {name: two, taskRef: {name: filled}}
---
apiVersion: tekton.dev/v1
kind: Task
metadata: {name: plain, labels: {team: a}}
spec: {steps: [{image: same}]}
---
apiVersion: tekton.dev/v1
kind: Task
metadata: {name: filled}
spec: {steps: [{image: "{{ sender }}"}]}
`
	set := Load([]git.File{{Path: ".tekton/a.yaml", Data: []byte(definitions)}}).Paced(
		func(context.Context, time.Duration) error { return nil })
	for _, sender := range []string{"first", "second"} {
		run, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, map[string]string{"sender": sender}), nil)
		if err != nil {
			t.Fatal(err)
		}
		one, two := run.Spec.PipelineSpec.Tasks[0].TaskSpec, run.Spec.PipelineSpec.Tasks[1].TaskSpec
		if one.Steps[0].Image != "same" || one.Metadata.Labels["team"] != "a" || two.Steps[0].Image != sender {
			t.Errorf("%s: the steps are %+v and %+v, the labels %v", sender, one.Steps, two.Steps, one.Metadata.Labels)
		}
		one.Steps[0].Image, one.Metadata.Labels["team"] = "changed", "changed"
	}
	if n := len(set.same.of); n != 1 {
		t.Errorf("%d Tasks are shared, want the one without placeholders", n)
	}
}

// remoteTask is what every reference stands for.
type remoteTask string

func (r remoteTask) Read(context.Context, Kind, string) (git.File, error) {
	return git.File{Path: "task.yaml", Data: []byte(r)}, nil
}

// What an annotation refers to is read for each PipelineRun anew: a Task of it is the same for no
// other one, and to remember it would hold all of them until the event is planned.
func TestTasksOfReferencesAreNotHeld(t *testing.T) {
	t.Parallel()
	const definition = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: a
  annotations: {pipelinesascode.tekton.dev/task: "[ci/task.yaml]"}
spec:
  pipelineSpec:
    tasks:
      - {name: one, taskRef: {name: far}}
`
	set := Load([]git.File{{Path: ".tekton/a.yaml", Data: []byte(definition)}}).Paced(
		func(context.Context, time.Duration) error { return nil })
	far := remoteTask("apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: far}\nspec: {steps: [{image: same}]}\n")
	for range 2 {
		run, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil), far)
		if err != nil || len(run.Spec.PipelineSpec.Tasks[0].TaskSpec.Steps) != 1 {
			t.Fatal(run, err)
		}
	}
	if n := len(set.same.of); n != 0 {
		t.Errorf("%d Tasks of references are held", n)
	}
}

// What is held until the event is planned does not grow with its PipelineRuns: twenty that each
// refer to another large Task of .tekton would take a gigabyte.
func TestSharedTasksTakeLittleMemory(t *testing.T) {
	t.Parallel()
	sidecars := strings.Repeat("{},", 9_000)
	var definitions strings.Builder
	for n := range 5 {
		fmt.Fprintf(&definitions, "---\napiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: run-%d}\nspec: {pipelineSpec: {tasks: [{name: one, taskRef: {name: task-%d}}]}}\n", n, n)
		fmt.Fprintf(&definitions,
			"---\napiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: task-%d}\nspec: {sidecars: [%s]}\n", n, sidecars)
	}
	set := Load([]git.File{
		{Path: ".tekton/a.yaml", Data: []byte(definitions.String())},
	}).Paced(func(context.Context, time.Duration) error { return nil })
	for _, definition := range set.Definitions() {
		run, err := set.Render(t.Context(), definition, scopeOf(t, nil), nil)
		if err != nil || len(run.Spec.PipelineSpec.Tasks[0].TaskSpec.Sidecars) != 9_000 {
			t.Fatal(err)
		}
	}
	if n, want := len(set.same.of), memory.MaxAnswer/(17*9_000); n != want {
		t.Errorf("%d Tasks are held, want %d", n, want)
	}
}

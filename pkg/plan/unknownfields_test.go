// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

// Fields that do not exist are dropped, and the check of the run says so.
func TestUnknownFieldsAreNotes(t *testing.T) {
	t.Parallel()
	w := &env{files: []git.File{
		pipeline("fine"), edited(pipeline("one"), "spec:\n", "spec:\n  timeout: 1h\n"),
		edited(pipeline("many"), "spec:\n", "spec:\n  a1: 1\n  a2: 1\n  a3: 1\n  a4: 1\n  a5: 1\n"),
	}}
	made := w.make(t, push())
	var notes []string
	for _, run := range made.Runs {
		notes = append(notes, run.Note)
	}
	want := []string{
		"", "Fields that do not exist were dropped: spec.timeout (.tekton/one.yaml).",
		"Fields that do not exist were dropped: spec.a1, spec.a2, spec.a3 and 2 more (.tekton/many.yaml).",
	}
	if diff := cmp.Diff(want, notes); diff != "" || len(created(made)) != 3 {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// Annotations and placeholders that have no effect stay on the PipelineRun, and its check says so.
func TestLintIsNote(t *testing.T) {
	t.Parallel()
	w := &env{files: []git.File{edited(pipeline("one"), "annotations:\n",
		"annotations:\n    pipelinesascode.tekton.dev/on-labels: \"{{ revisoin }}\"\n    plumbline.dev/x: \"1\"\n")}}
	made := w.make(t, push())
	want := "Without effect in .tekton/one.yaml: on-labels does not exist. Did you mean on-label? plumbline.dev/x does not exist. " +
		"{{ revisoin }} is not defined, so it stays as it is. Did you mean {{ revision }}?"
	if len(made.Runs) != 1 || made.Runs[0].Note != want {
		t.Fatalf("%+v", made.Runs)
	}
	run, err := made.Runs[0].PipelineRun()
	if err != nil || run.Annotations["pipelinesascode.tekton.dev/on-labels"] != "{{ revisoin }}" {
		t.Errorf("%v, %v", run.Annotations, err)
	}
}

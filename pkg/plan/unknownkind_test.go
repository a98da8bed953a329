// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// A document of an unknown kind fails its own check on the same events as a document that is not
// YAML: pushes and pull requests, but not comments or commands that name another pipeline. The
// pipelines of other files start.
func TestDocumentOfUnknownKindFailsOwnCheck(t *testing.T) {
	t.Parallel()
	wrong := git.File{
		Path: ".tekton/wrong.yaml", Data: []byte("apiVersion: tekton.dev/v1\nkind: PipeLineRun\nmetadata: {name: wrong}\n"),
	}
	const refused = ".tekton/wrong.yaml UnknownKind .tekton/wrong.yaml:2:7: kind: Tekton has no kind PipeLineRun: write kind: PipelineRun"
	pull := forked()
	for name, c := range map[string]struct {
		in    plan.Input
		said  string
		files []git.File
		want  []string
	}{
		"a push":                 {push(), "", []git.File{wrong, pipeline("build")}, []string{refused, "build"}},
		"a push of the one file": {push(), "", []git.File{wrong}, []string{refused}},
		"a pull request":         {pull, "", []git.File{pulled("build"), wrong}, []string{"build", refused}},
		"a comment": {
			commented(), "/deploy", []git.File{wrong, pipeline("deploy", "on-comment: ^/deploy")}, []string{"deploy"},
		},
		"a command that names another": {
			commented(), "/test build", []git.File{wrong, pulled("build")}, []string{"build"},
		},
		"a command that names no pipeline": {
			commented(), "/test", []git.File{wrong, pulled("build")}, []string{refused, "build"},
		},
		"another project's kind in the file": {
			push(), "", []git.File{{Path: "x.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\n")}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &env{files: c.files, writers: "member author", said: c.said, moved: sha}
			made := w.make(t, c.in)
			var got []string
			for _, run := range made.Runs {
				line := run.Pipeline
				if run.Refused != nil {
					line += " " + run.Refused.Reason + " " + run.Refused.Message
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || (made.Disposition == v1alpha1.DispositionRuns) != (c.want != nil) {
				t.Errorf("%s: -want +got\n%s", made.Disposition, diff)
			}
		})
	}
}

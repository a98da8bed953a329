// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// Cached definitions give the same plan as definitions that are read again.
func TestCachedDefinitionsGiveSamePlan(t *testing.T) {
	files := []git.File{
		edited(pipeline("build"), `"true"`, `"echo {{ revision }} {{ sender }}"`),
		edited(pipeline("block"), `script: "true"`, "script: \"{{ source_branch }}\", workingDir: {{ revision }}"),
		pipeline("cel", `on-cel-expression: event == "push" && target_branch == "main"`),
		pipeline("paths", `on-path-change: "[docs/**]"`), pipeline("elsewhere", `target-namespace: "other"`),
		edited(pipeline("twice"), "twice", "build"), {Path: ".tekton/broken.yaml", Data: []byte("a: [")},
		{Path: ".tekton/refers.yaml", Data: []byte(
			strings.Split(string(pipeline("refers").Data), "spec:")[0] + "spec: {pipelineRef: {name: nowhere}}\n")},
	}
	sets := &plan.Sets{}
	for range 2 {
		for _, event := range []string{"push-1", "push-2"} {
			w := &env{files: files, changed: git.Changes{Modified: []string{"docs/" + event}}}
			in := push()
			in.Event.Name, in.Event.Spec.SHA, in.Event.Spec.Sender = event, strings.Repeat(event[5:], 40), "dev-"+event
			anew := w.make(t, in)
			in.Sets = sets
			kept := w.make(t, in)
			if len(anew.Runs) == 0 || len(created(anew)) < 3 {
				t.Fatalf("%v", reasons(anew))
			}
			if diff := cmp.Diff(anew, kept,
				cmp.Transformer("words", func(err error) string { return fmt.Sprint(err) })); diff != "" {
				t.Errorf("%s: %s", event, diff)
			}
		}
	}
}

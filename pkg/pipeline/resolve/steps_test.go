// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// Steps are counted over all tasks of a PipelineRun, wherever they are written.
func TestAPipelineRunHasFewSteps(t *testing.T) {
	t.Parallel()
	steps := func(n int) string { return "[" + strings.Repeat("{image: x},", n) + "]" }
	for name, c := range map[string]struct {
		task, written int // steps of a Task that is referred to twice, and of one that is written where it is used
		refused       bool
	}{
		"as many as may be":         {(maxSteps - 10) / 2, 10, false},
		"one more":                  {(maxSteps - 10) / 2, 11, true},
		"a Task that alone is more": {maxSteps + 1, 1, true},
		"written where it is used":  {1, maxSteps, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := Load([]git.File{{Path: ".tekton/a.yaml", Data: fmt.Appendf(nil, `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {name: a}
spec:
  pipelineSpec:
    tasks:
      - {name: one, taskRef: {name: shared}}
      - {name: two, taskSpec: {steps: %s}}
    finally:
      - {name: three, taskRef: {name: shared}}
---
apiVersion: tekton.dev/v1
kind: Task
metadata: {name: shared}
spec: {steps: %s}
`, steps(c.written), steps(c.task))}})
			_, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil), shelf("none"))
			if f := fault.Of(err); c.refused != (f != nil && f.Reason == "TooManySteps") || !c.refused && err != nil {
				t.Errorf("%v, want it refused: %t", err, c.refused)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Next to Pipelines-as-Code no PipelineRun ever has the label or the annotation by which its
// watcher adopts PipelineRuns. The setting counts when the event is planned: a later change
// neither adds them nor removes them.
func TestStateOfPipelineRunsNextToPipelinesAsCode(t *testing.T) {
	t.Parallel()
	beside := map[string]string{"pipelines-as-code-url": "http://pac:8080"}
	for name, c := range map[string]struct {
		planned, later map[string]string
		state          string
	}{
		"it runs":               {beside, beside, ""},
		"it ends meanwhile":     {beside, nil, ""},
		"it does not run":       {nil, nil, pipelinesascode.StateCompleted},
		"it is added meanwhile": {nil, beside, pipelinesascode.StateCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			w.settings = c.planned
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			for _, run := range w.runs() {
				_, label := run.Labels[pipelinesascode.State]
				_, annotation := run.Annotations[pipelinesascode.State]
				if has := c.state != ""; label != has || annotation != has {
					t.Errorf("created with the label: %t, and the annotation: %t", label, annotation)
				}
			}
			w.settings = c.later
			w.settleAttempts(evicted)
			if check := w.git.checks["1"]; check.Conclusion != status.Success || len(w.runs()) != 2 {
				t.Errorf("%d PipelineRuns, the check says %s", len(w.runs()), check.Conclusion)
			}
			for _, run := range w.runs() {
				label, annotation := run.Labels[pipelinesascode.State], run.Annotations[pipelinesascode.State]
				if label != c.state || annotation != c.state || (run.Labels[plumbline.ReportedLabel] == "true") != (c.state == "") {
					t.Errorf("%s: labels %v, state %q", run.Name, run.Labels, annotation)
				}
			}
		})
	}
}

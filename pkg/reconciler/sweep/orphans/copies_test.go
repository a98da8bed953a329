// SPDX-License-Identifier: Apache-2.0

package orphans_test

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
)

// A console has copied a running PipelineRun, and its event was deleted since. The copy says
// nothing about the check, which a newer run of the same pipeline may have opened again.
func TestCopiedPipelineRunClosesNoCheck(t *testing.T) {
	t.Parallel()
	original := resources.RunName("push-1", ".tekton/build.yaml", 0, "build")
	for name, reports := range map[string]int{original: 1, original + "-k3x9q": 0} {
		w := newEnv(t)
		w.run.Name = name
		w.run.Labels[plumbline.InstallationLabel] = system
		w.run.Annotations[plumbline.RunKeyAnnotation] = system + "/push-1/.tekton/build.yaml#0"
		w.start()
		if _, err := w.close(); err != nil || len(w.puts) != reports || len(w.patches) != reports {
			t.Errorf("%s: %d reports, %d patches: %v", name, len(w.puts), len(w.patches), err)
		}
	}
}

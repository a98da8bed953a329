// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// A push of a commit with one pipeline becomes one PipelineRun and one check that ends as the run does.
func TestPushBecomesACheck(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, pushBecomesACheck)
}

func pushBecomesACheck(t *testing.T, w *world) {
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": onTekton(pipeline("hello", "push"))})
	w.deliver(delivery, 202)
	w.checkReaches(sha, checkName("hello"), "success", soon)
	w.settled(soon)
	w.neverFailed(sha)
	if runs := w.runs(); len(runs) != 1 {
		t.Errorf("%d PipelineRuns, want 1", len(runs))
	}
}

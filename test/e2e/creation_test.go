// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

func isCreate(c cluster.Call) bool { return c.Is("create", "pipelineruns") }

// C3: the create of a PipelineRun lands although nobody answers it: the retry meets the object,
// knows it as its own and adopts it: one run, one check.
func TestACreateThatLandedIsAdopted(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, adoptsWhatLanded)
}

func adoptsWhatLanded(t *testing.T, w *world) {
	lost := w.controller().Proxy.Add(cluster.Rule{Match: isCreate, Count: 1, Do: cluster.ApplyThenDrop()})
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("landed", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("landed"), "success", afterFault)
	w.settles(sha, afterFault)
	w.neverFailed(sha)
	w.oneCheck(sha, checkName("landed"))
	if lost.Hits() != 1 {
		t.Errorf("%d answers were lost, want 1", lost.Hits())
	}
	creates := w.calls("create", "landed")
	if n := len(creates); n != 2 || creates[1].Status != http.StatusConflict || creates[0].Name != creates[1].Name {
		t.Errorf("creates %+v, want two of one name, the second answered 409 AlreadyExists", creates)
	}
	if runs := w.runs(); len(runs) != 1 {
		t.Errorf("%d PipelineRuns, want 1", len(runs))
	}
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

func isCreate(c cluster.Call) bool { return c.Is("create", "pipelineruns") }

// C3: the creation of a PipelineRun succeeds and its answer is lost. The retry finds the object,
// recognizes it as its own and adopts it: one run, one check.
func TestCreatedRunWithLostAnswerIsAdopted(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, adoptsCreatedRun)
}

func adoptsCreatedRun(t *testing.T, env *environment) {
	lost := env.controller().Proxy.Add(cluster.Rule{Match: isCreate, Count: 1, Do: cluster.ApplyThenDrop()})
	sha := env.pushAccepted(map[string]string{".tekton/run.yaml": pipeline("landed", "push")})
	env.awaitCheck(sha, checkName("landed"), "success", afterFault)
	env.awaitSettled(sha, afterFault)
	env.requireNoFailure(sha)
	env.requireOneCheck(sha, checkName("landed"))
	if lost.Hits() != 1 {
		t.Errorf("%d answers were lost, want 1", lost.Hits())
	}
	creates := env.runCalls("create", "landed")
	if n := len(creates); n != 2 || creates[1].Status != http.StatusConflict || creates[0].Name != creates[1].Name {
		t.Errorf("creates %+v, want two of one name, the second answered 409 AlreadyExists", creates)
	}
	env.requireRunCount(1)
}

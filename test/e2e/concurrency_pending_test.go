// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// asPending creates the PipelineRun of a definition as pending, as Kueue would.
func asPending(definition string) string {
	return strings.Replace(definition, "\nspec:\n", "\nspec:\n  status: PipelineRunPending\n", 1)
}

// F13, see docs/adr/0041: a run that another controller created as pending keeps its slot, and its
// check is queued. Only that controller may start it. A command cancels another run that is still
// pending. F11: a run that waits for the slot is cancelled when its pull request is closed.
func TestPendingRunKeepsSlot(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	env.git.grant("dev", "write")
	env.setLimit(env.ci, "app", 1)
	s := env.newRunWatcher()
	first := env.pushAccepted(map[string]string{".tekton/push.yaml": asPending(pipeline("first", "push"))})
	event := env.awaitRunsCreated(first)
	second := env.git.commit("topic", forge.Change{Author: "dev", Message: "topic", Files: map[string]string{
		".tekton/pr.yaml": asPending(pipeline("second", "pull_request")),
	}})
	number := env.git.open("", "topic", "dev")
	env.deliver(env.opened(number), http.StatusAccepted)
	env.awaitQueue(1, 1)
	if check := env.awaitCheck(first, checkName("first"), "queued", soon); !check.Tells("its status is Pending") {
		t.Errorf("the check of the run that is held says %q: %s", check.Title, check.Text)
	}
	env.awaitCheck(second, checkName("second"), "queued", soon)
	closed, waits := env.openTopicPull("closed")
	env.deliver(env.opened(closed), http.StatusAccepted)
	env.awaitQueue(1, 2)
	env.deliver(env.closePull(closed, false), http.StatusAccepted)
	if check := env.awaitCheck(waits, checkName("pr"), "cancelled", soon); !check.Tells("closed") {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	env.awaitQueue(1, 1)
	name := runName(event, "first")
	if run := env.getRun(name); !run.IsPending() || len(env.runs()) != 1 {
		t.Errorf("%s has spec.status %q, and there are %d runs", name, run.Spec.Status, len(env.runs()))
	}
	env.must(errOf(env.Tekton.TektonV1().PipelineRuns(env.ci).Patch(env.ctx, name, types.MergePatchType,
		[]byte(`{"spec":{"status":null}}`), metav1.PatchOptions{})))
	env.awaitCheck(first, checkName("first"), "success", soon)
	held := env.getRun(runName(env.awaitRunsCreated(second), "second"))
	env.awaitQueue(1, 0)
	if !held.IsPending() {
		t.Errorf("%s has spec.status %q", held.Name, held.Spec.Status)
	}
	env.deliver(env.comment(number, "dev", "/cancel"), http.StatusAccepted)
	if check := env.awaitCheck(second, checkName("second"), "cancelled", soon); !check.Tells("dev requested it") {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	env.awaitAllSettled(afterFault)
	env.awaitQueue(0, 0)
	if most, _, _ := s.snapshot(); most > 1 {
		t.Errorf("%d ran at once, at most 1 may", most)
	}
	env.requireInvariants()
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// B11: a force-push replaces A by B while one of A's two runs exists and the other waits to be
// created. The first goes on to its own end. The other is never created, and its check is
// cancelled: "superseded by B". B runs.
func TestForcePushSupersedesWaitingRun(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, isSupersededWhileARunWaits)
}

func isSupersededWhileARunWaits(t *testing.T, env *environment) {
	base := env.git.commit("main", forge.Change{Files: map[string]string{"x": "base"}, Message: "base"})
	env.controller().Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return isCreate(c) && strings.HasPrefix(c.Name, "waits") },
		Do:    cluster.Fault(cluster.WebhookRefused()),
	})
	a, first := env.push(map[string]string{
		".tekton/a.yaml": pipeline("exists", "push", held), ".tekton/b.yaml": pipeline("waits", "push"),
	})
	env.deliver(first, http.StatusAccepted)
	env.awaitWait(a, "create/waits")
	env.awaitCheck(a, checkName("waits"), "queued", soon)
	env.awaitCheck(a, checkName("exists"), "in_progress", soon)

	b := env.git.commit("main", forge.Change{
		Parent: base, Files: map[string]string{".tekton/b.yaml": pipeline("b", "push")}, Message: "b",
	})
	env.deliver(env.newDelivery(), http.StatusAccepted)
	env.awaitCheck(b, checkName("b"), "success", afterFault)
	check := env.awaitCheck(a, checkName("waits"), "cancelled", afterFault)
	if !strings.Contains(check.Text, "superseded by "+b) {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	if check, _ := env.currentCheck(a, checkName("exists")); check.Status != "in_progress" {
		t.Errorf("the check of the run that exists is %s/%s, want it in progress", check.Status, check.Conclusion)
	}
	event := env.recordOf(first)
	env.releaseRuns(&v1alpha1.GitEvent{Status: v1alpha1.GitEventStatus{Runs: event.Status.Runs[:1]}})
	env.awaitCheck(a, checkName("exists"), "success", afterFault)
	env.awaitAllSettled(afterFault)
	env.requireNoFailure(a)
	env.requireOneCheck(a, checkName("waits"))
	env.requireOnlyStarted("b", "exists")
	if runs, secrets := len(env.runs()), env.countSecrets(); secrets != runs {
		t.Errorf("%d secrets are left in the end, want those of %d runs", secrets, runs)
	}
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/planning"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// S25: OWNERS of the default branch allows users without write access to run pipelines. OWNERS of
// the pull request's own branch has no effect, aliases in a loop grant nothing, and a broken file
// grants nothing to any user. The Repository gets one Kubernetes Event about it, however many
// untrusted users there are.
func TestOwnersAllowRuns(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.git.grant("writer", "write")
		env.git.commit("main", forge.Change{Files: map[string]string{
			".tekton/pr.yaml": pipeline("pr", "pull_request"),
			"OWNERS":          "filters:\n  '.*': {approvers: [anna, leads, ring]}\n  '\\.go$': {approvers: [gus]}\n",
			"OWNERS_ALIASES":  "aliases: {leads: [lea], ring: [rang], rang: [ring, rita]}\n",
		}})
		env.requireRuns("anna")
		env.requireRuns("lea")
		env.requirePending("gus", "is not in OWNERS")
		env.requirePending("leads", "is not in OWNERS")
		env.requirePending("rita", "is not in OWNERS")
		env.git.fork("eve")
		env.git.commitFork("eve", forge.Change{Files: map[string]string{
			"OWNERS": "approvers: [eve]\n", "OWNERS_ALIASES": "aliases: {leads: [eve]}\n",
		}, Author: "eve"})
		env.requirePendingReason(env.opened(env.git.open("eve", "feature", "eve")), "is not in OWNERS")
		env.git.commit("main", forge.Change{Files: map[string]string{"OWNERS": "approvers: [hans\n"}})
		env.requireOwnersIgnored("OWNERS is not YAML")
		env.requireRunCount(3)
	})
}

// requireOwnersIgnored requires that OWNERS grants hans nothing, that a writer's pull request
// runs, and that the Repository has one Event with the reason.
func (env *environment) requireOwnersIgnored(says string) {
	env.t.Helper()
	env.requirePending("hans", "is not in OWNERS")
	env.awaitRepositoryEvent(planning.ReasonBadOwners, says)
	env.requirePending("heidi", "is not in OWNERS")
	env.requireRuns("writer")
	list, err := env.Kube.CoreV1().Events(env.ci).List(env.ctx,
		metav1.ListOptions{FieldSelector: "involvedObject.kind=Repository,reason=" + planning.ReasonBadOwners})
	env.must(err)
	if len(list.Items) != 1 || list.Items[0].Count > 1 {
		env.t.Errorf("the Repository has the Events %+v, want one", list.Items)
	}
}

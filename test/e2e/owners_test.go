// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/planning"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// S25: OWNERS of the default branch let run who cannot write. Of a pull request's own branch they
// count for nothing, aliases that loop are nobody's, and a broken file grants nobody anything,
// which the Repository is told once for all of its strangers.
func TestOwners(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.git.grant("writer", "write")
		w.git.commit("main", forge.Change{Files: map[string]string{
			".tekton/pr.yaml": pipeline("pr", "pull_request"),
			"OWNERS":          "filters:\n  '.*': {approvers: [anna, leads, ring]}\n  '\\.go$': {approvers: [gus]}\n",
			"OWNERS_ALIASES":  "aliases: {leads: [lea], ring: [rang], rang: [ring, rita]}\n",
		}})
		w.runsFor("anna")
		w.runsFor("lea")
		w.pendsFor("gus", "is not in OWNERS")
		w.pendsFor("leads", "is not in OWNERS")
		w.pendsFor("rita", "is not in OWNERS")
		w.git.fork("eve")
		w.git.commitFork("eve", forge.Change{Files: map[string]string{"OWNERS": "approvers: [eve]\n", "OWNERS_ALIASES": "aliases: {leads: [eve]}\n"}, Author: "eve"})
		w.pendsBecause(w.opened(w.git.open("eve", "feature", "eve")), "is not in OWNERS")
		w.git.commit("main", forge.Change{Files: map[string]string{"OWNERS": "approvers: [hans\n"}})
		w.badOwners("OWNERS is not YAML")
		if runs := w.runs(); len(runs) != 3 {
			t.Errorf("%d PipelineRuns, want three", len(runs))
		}
	})
}

// badOwners requires that OWNERS grant hans nothing, that a writer goes on, and that the Repository
// has one Event that says why, however many strangers there are.
func (w *world) badOwners(says string) {
	w.t.Helper()
	w.pendsFor("hans", "is not in OWNERS")
	w.repositoryTold(planning.ReasonBadOwners, says)
	w.pendsFor("heidi", "is not in OWNERS")
	w.runsFor("writer")
	list, err := w.Kube.CoreV1().Events(w.ci).List(w.ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Repository,reason=" + planning.ReasonBadOwners})
	w.must(err)
	if len(list.Items) != 1 || list.Items[0].Count > 1 {
		w.t.Errorf("the Repository has the Events %+v, want one", list.Items)
	}
}

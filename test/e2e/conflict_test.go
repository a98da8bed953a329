// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// D4: many conflicts in a row, on the writes of the GitEvent's status or on the patches of the PipelineRun, end with
// everything applied once: one run, one check run, at most one Kubernetes Event, and no error logged more often than
// it was met.
func TestAStormOfConflicts(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, outlivesAStorm)
}

func outlivesAStorm(t *testing.T, w *world) {
	patches := func(c cluster.Call) bool { return c.Is("patch", "pipelineruns") }
	storm := w.controller().Proxy.Add(cluster.Rule{Match: patches, Count: conflictStorm, Do: cluster.Fault(cluster.Conflict("x"))})
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("stormy", "push")})
	w.deliver(delivery, http.StatusAccepted)
	check := w.checkReaches(sha, checkName("stormy"), "success", afterFault)
	w.settles(sha, afterFault)
	if storm.Hits() != conflictStorm {
		t.Errorf("%d conflicts, want %d: the rest of the test shows nothing", storm.Hits(), conflictStorm)
	}
	w.neverFailed(sha)
	w.oneCheck(sha, checkName("stormy"))
	w.postedOnce(sha)
	runs := w.runs()
	if len(runs) != 1 {
		t.Fatalf("%d PipelineRuns, want 1", len(runs))
	}
	w.patched(runs[0].Name, check)
	w.toldOnce(w.events()[0].Name)
	if n := w.loggedConflicts(); n > storm.Hits() {
		t.Errorf("%d errors logged for %d conflicts", n, storm.Hits())
	}
}

// loggedConflicts counts the error lines that speak of a conflict.
func (w *world) loggedConflicts() int {
	w.t.Helper()
	n := 0
	for _, line := range w.logged(w.controller()) {
		if strings.Contains(line, "the object has been modified") {
			n++
		}
	}
	return n
}

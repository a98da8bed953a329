// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// uninstall takes the App away from the world's repository; the function that it returns installs
// it again.
func (w *world) uninstall() (again func()) {
	w.t.Helper()
	g, isGitHub := w.git.(*onGitHub)
	if !isGitHub {
		w.t.Fatal("only GitHub has Apps")
	}
	g.Uninstall(g.installation)
	return func() { g.installation = g.Install(g.app.ID, "acme", repoName) }
}

// G8: while the App is uninstalled a run ends, and an event waits. That nobody can be told of the
// run's end is counted, and its event ends. The other event ends as refused, its Repository is told
// once, and nothing is asked for it any more. Once the App is installed again, as another
// installation, its redelivery is processed.
func TestTheEventsOfAnUninstalledAppEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, flags: []string{"-operator-retry=" + operatorRetry.String()}})
	w.claimed()
	left, before := w.push(map[string]string{".tekton/run.yaml": pipeline("left", "push", held)})
	w.deliver(before, http.StatusAccepted)
	w.checkReaches(left, checkName("left"), "in_progress", soon)
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("uninstalled", "push")})
	again := w.uninstall()
	w.deliver(delivery, http.StatusAccepted)
	w.settles(sha, afterFault)
	event := w.recordOf(delivery)
	if event.Status.Disposition != v1alpha1.DispositionRefused || planOf(event).Reason != fault.ReasonInstallationGone {
		t.Errorf("it is %s %+v, want Refused because of %s", event.Status.Disposition, planOf(event), fault.ReasonInstallationGone)
	}
	w.untold(sha)
	w.credentials("True", "NoProblem")
	w.tells(event.Name, "GivenUp", 1)
	w.endsUntold(left, before)
	again()
	if status, body, err := w.git.redeliver(w.ctx, delivery.ID()); err != nil || status != http.StatusAccepted {
		t.Fatalf("its redelivery is answered %d %s, %v", status, body, err)
	}
	w.checkReaches(sha, checkName("uninstalled"), "success", afterFault)
	w.settles(sha, afterFault)
	w.neverFailed(sha)
	w.ranOnce("uninstalled")
}

// endsUntold ends the run of an event while nobody can be told of it.
func (w *world) endsUntold(sha string, delivery delivery) {
	w.t.Helper()
	event := w.created(sha)
	if event.Settled() {
		w.t.Error("the event is settled although its run goes on")
	}
	w.release(event)
	w.ended(event.Status.Runs[0])
	w.settles(sha, afterFault)
	settled := w.recordOf(delivery)
	if run := settled.Status.Runs[0]; settled.Status.Disposition != v1alpha1.DispositionRuns || run.Result == nil || run.Result.Outcome != v1alpha1.OutcomeSucceeded {
		w.t.Errorf("it is %s with the run %+v, want it to have run and succeeded", settled.Status.Disposition, run)
	}
	if reported := settled.Status.GetCondition(v1alpha1.GitEventReported); reported.IsTrue() || reported.Reason != fault.ReasonInstallationGone {
		w.t.Errorf("condition Reported is %v, want why nobody was told", reported)
	}
	if n := w.number(w.controller(), "plumbline_report_dropped_total"); n != 1 {
		w.t.Errorf("%v reports were counted as dropped, want 1", n)
	}
	w.neverFailed(sha)
}

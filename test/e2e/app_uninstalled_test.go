// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// uninstall removes the App from the environment's repository; the function that it returns
// installs it again.
func (env *environment) uninstall() (again func()) {
	env.t.Helper()
	g, isGitHub := env.git.(*onGitHub)
	if !isGitHub {
		env.t.Fatal("only GitHub has Apps")
	}
	g.Uninstall(g.installation)
	return func() { g.installation = g.Install(g.app.ID, "acme", repoName) }
}

// G8: while the App is uninstalled, a run ends and an event waits. The unreported result of the
// run is counted, and its event is settled. The other event is settled as refused, its Repository
// gets one Kubernetes Event, and no more calls are made for it. After a new installation of the
// App its redelivery is processed.
func TestUninstalledAppEndsEvents(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t,
		setup{receivers: 1, controllers: 1, flags: []string{"-operator-retry=" + operatorRetry.String()}})
	left, before := env.push(map[string]string{".tekton/run.yaml": pipeline("left", "push", held)})
	env.deliver(before, http.StatusAccepted)
	env.awaitCheck(left, checkName("left"), "in_progress", soon)
	sha, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline("uninstalled", "push")})
	again := env.uninstall()
	env.deliver(delivery, http.StatusAccepted)
	env.awaitSettled(sha, afterFault)
	event := env.recordOf(delivery)
	if event.Status.Disposition != v1alpha1.DispositionRefused || planOf(event).Reason != fault.ReasonInstallationGone {
		t.Errorf("it is %s %+v, want Refused because of %s", event.Status.Disposition, planOf(event),
			fault.ReasonInstallationGone)
	}
	env.requireNothingReported(sha)
	env.awaitCredentialsCondition("True", "NoProblem")
	env.awaitReported(event.Name, "GivenUp", 1)
	env.endUnreported(left, before)
	again()
	if status, body, err := env.git.redeliver(env.ctx, delivery.ID()); err != nil || status != http.StatusAccepted {
		t.Fatalf("its redelivery is answered %d %s, %v", status, body, err)
	}
	env.awaitCheck(sha, checkName("uninstalled"), "success", afterFault)
	env.awaitSettled(sha, afterFault)
	env.requireNoFailure(sha)
	env.requireRanOnce("uninstalled")
}

// endUnreported ends the run of an event while its result cannot be reported.
func (env *environment) endUnreported(sha string, delivery delivery) {
	env.t.Helper()
	event := env.awaitRunsCreated(sha)
	if event.Settled() {
		env.t.Error("the event is settled although its run goes on")
	}
	env.releaseRuns(event)
	env.awaitRunEnd(event.Status.Runs[0])
	env.awaitSettled(sha, afterFault)
	settled := env.recordOf(delivery)
	equal(env.t, "the disposition", settled.Status.Disposition, v1alpha1.DispositionRuns)
	if run := settled.Status.Runs[0]; run.Result == nil || run.Result.Outcome != v1alpha1.OutcomeSucceeded {
		env.t.Errorf("the run is %+v, want it to have succeeded", run)
	}
	if reported := settled.Status.GetCondition(v1alpha1.GitEventReported); reported.IsTrue() ||
		reported.Reason != fault.ReasonInstallationGone {
		env.t.Errorf("condition Reported is %v, want the reason why it was not reported", reported)
	}
	if n := env.metric(env.controller(), "plumbline_report_dropped_total"); n != 1 {
		env.t.Errorf("%v reports were counted as dropped, want 1", n)
	}
	env.requireNoFailure(sha)
}

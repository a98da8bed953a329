// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// H7 in short: the API server is killed during a run for longer than the leases. Receivers stay
// ready and answer 503 with Retry-After, no process ends, and no check changes. When it is back,
// the run and the refused push, which GitHub redelivers at the controller's request (A14), both
// end correctly. The test stops a part that all environments share, so it does not run in
// parallel.
func TestControlPlaneOutage(t *testing.T) {
	env := newClaimedEnvironment(t, setup{receivers: 2, controllers: 2})
	sha, delivery := env.push(map[string]string{".tekton/push.yaml": onTekton(pipeline("outlived", "push", held))})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitCheck(sha, checkName("outlived"), "in_progress", soon)
	event := env.awaitRunsCreated(sha)
	// one that has not read its settings yet ends, and is started again by kubelet
	for _, controller := range env.controllers {
		env.eventually(soon, "every controller has started", func() error {
			if !strings.Contains(env.processLog(controller), "Attempting to acquire leader lease") {
				return errMissing
			}
			return nil
		})
	}
	env.forge.SetWebhookURL(env.App.ID, env.receivers[0].URL)
	late, refused := env.push(map[string]string{".tekton/push.yaml": pipeline("late", "push")})

	env.must(shared.cluster.Part(cluster.APIServer).Kill())
	env.t.Cleanup(env.startAPIServer) // also when the test ends early
	written := len(env.git.log().writes)
	if status, body, err := env.git.deliver(env.ctx, env.receivers[0].URL, refused); err != nil ||
		status != http.StatusServiceUnavailable {
		t.Errorf("GitHub's delivery was answered %d %s, %v", status, body, err)
	}
	for begin := time.Now(); time.Since(begin) < controlPlaneOutage; {
		for _, receiver := range env.receivers {
			env.requireRetryLater("the API server is down", env.mustSend(receiver, refused))
			if status := env.getStatus(receiver, "/ready"); status != http.StatusOK {
				t.Errorf("without the API server /ready answers %d, want 200", status)
			}
		}
	}
	if writes := env.git.log().writes[written:]; len(writes) != 0 {
		t.Errorf("during the outage the forge got %+v", writes)
	}
	env.startAPIServer()
	for _, p := range env.processes() {
		if !p.Running() {
			t.Errorf("%s has ended", p.Name())
		}
	}

	env.releaseRuns(event)
	env.awaitCheck(sha, checkName("outlived"), "success", afterFault)
	env.awaitCheck(late, checkName("late"), "success", afterFault)
	env.awaitAllSettled(afterFault)
	for _, commit := range []string{sha, late} {
		env.requireNoFailure(commit)
	}
	env.requireRunCount(2)
	env.requireInvariants()
}

// startAPIServer starts the API server and restarts the other parts of the cluster: client-go's
// informers retry after up to a minute (30 s and as much jitter), and the test is not about
// Tekton's.
func (env *environment) startAPIServer() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*afterFault)
	defer cancel()
	if shared.cluster.Part(cluster.APIServer).Running() {
		return
	}
	for _, name := range []string{cluster.APIServer, cluster.ControllerManager, cluster.TektonController} {
		if err := shared.cluster.Part(name).Restart(ctx); err != nil {
			env.t.Errorf("starting %s again: %v", name, err)
		}
	}
}

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

// H7, short: the API server is killed while a run is under way, for longer than the leases.
// Receivers stay ready and answer 503 with Retry-After, no process ends, and no check says
// anything. When it is back, the run that went on and the push that was refused, which the
// controller has GitHub send again (A14), both end as what they are. The test stops a part that all
// worlds share: it does not run beside others.
func TestH7TheControlPlaneIsDown(t *testing.T) {
	w := newWorld(t, setup{receivers: 2, controllers: 2})
	w.claimed()
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": onTekton(pipeline("outlived", "push", held))})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("outlived"), "in_progress", soon)
	event := w.created(sha)
	for _, controller := range w.controllers { // one that has not read its settings yet ends, and is started again by kubelet
		w.eventually(soon, "every controller has started", func() error {
			if !strings.Contains(w.log(controller), "Attempting to acquire leader lease") {
				return errMissing
			}
			return nil
		})
	}
	w.forge.SetWebhookURL(w.App.ID, w.receivers[0].URL)
	late, refused := w.push(map[string]string{".tekton/push.yaml": pipeline("late", "push")})

	w.must(shared.cluster.Part(cluster.APIServer).Kill())
	w.t.Cleanup(w.startAPIServer) // also when the test ends here
	written := len(w.git.log().writes)
	if status, body, err := w.git.deliver(w.ctx, w.receivers[0].URL, refused); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("GitHub's delivery was answered %d %s, %v", status, body, err)
	}
	for begin := time.Now(); time.Since(begin) < controlPlaneOutage; {
		for _, receiver := range w.receivers {
			w.sendAgain("the API server is down", w.sent(receiver, refused))
			if status := w.asked(receiver, "/ready"); status != http.StatusOK {
				t.Errorf("without the API server /ready answers %d, want 200", status)
			}
		}
	}
	if writes := w.git.log().writes[written:]; len(writes) != 0 {
		t.Errorf("during the outage the forge was told %+v", writes)
	}
	w.startAPIServer()
	for _, p := range w.processes() {
		if !p.Running() {
			t.Errorf("%s has ended", p.Name())
		}
	}

	w.release(event)
	w.checkReaches(sha, checkName("outlived"), "success", afterFault)
	w.checkReaches(late, checkName("late"), "success", afterFault)
	w.settled(afterFault)
	for _, commit := range []string{sha, late} {
		w.neverFailed(commit)
	}
	if runs := w.runs(); len(runs) != 2 {
		t.Errorf("%d PipelineRuns of two pushes", len(runs))
	}
	w.invariants()
}

// startAPIServer starts it, and everything of the cluster that is not ours anew: client-go's
// informers try again after up to a minute (30 s and as much jitter), and it is not Tekton's that
// are looked at.
func (w *world) startAPIServer() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*afterFault)
	defer cancel()
	if shared.cluster.Part(cluster.APIServer).Running() {
		return
	}
	for _, name := range []string{cluster.APIServer, cluster.ControllerManager, cluster.TektonController} {
		if err := shared.cluster.Part(name).Restart(ctx); err != nil {
			w.t.Errorf("starting %s again: %v", name, err)
		}
	}
}

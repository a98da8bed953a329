// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// H3: the Git service hangs while a controller that got SIGTERM posts a check. The controller
// releases the lease after leaderelection.Drain, and the next one posts the check too. The first post
// takes effect later. The newest check is true, and the other one is closed as superseded.
func TestControllerTerminatedDuringPostIsTakenOver(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	w, first := newPair(t)
	answer := make(chan struct{})
	posts := w.git.inject(createCheck, forge.Fault{Count: 1, Do: forge.Hold(answer)})
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("rolled", "push", held)})
	w.deliver(delivery, http.StatusAccepted)
	w.hit(posts, 1)
	w.must(first.Terminate())
	w.checkReaches(sha, checkName("rolled"), "in_progress", takeover)
	close(answer)
	w.ends(first)
	w.release(w.created(sha))
	w.endsOnce(sha, "rolled")
}

// H5: during an upgrade the next version's controller takes over an event of this version and
// finishes it. After a roll-back this version's controller does the same for an event of the next
// version. Both are built from the same sources, with two version strings. Each event has one run,
// with the version that created it, and one check.
func TestControllersOfTwoVersionsShareTheWork(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, standby: true})
	w.claimed()
	dir := t.TempDir()
	w.must(installation.Compile(w.ctx, dir, "-ldflags=-X=main.version=next", "./cmd/controller"))
	next, err := w.ControllerAt(w.ctx, filepath.Join(dir, "controller"), false, "-late-reports="+lateReports.String())
	w.must(err)
	versions := []*installation.Process{w.controller(), next}
	for i, version := range []string{"devel", "next"} {
		sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("shared", "push", held), "version": version})
		w.deliver(delivery, http.StatusAccepted)
		w.checkReaches(sha, checkName("shared"), "in_progress", takeover)
		event := w.created(sha)
		if got := w.run(event.Status.Runs[0].Name).Labels[pipelinesascode.VersionLabel]; got != version {
			t.Errorf("the run has version %q, want %q", got, version)
		}
		w.start(versions[1-i])
		w.must(versions[i].Terminate())
		w.ends(versions[i])
		w.release(event)
		w.checkReaches(sha, checkName("shared"), "success", takeover)
		w.settles(sha, afterFault)
		w.oneCheck(sha, checkName("shared"))
	}
	if runs := w.runs(); len(runs) != len(versions) {
		t.Errorf("%d PipelineRuns of %d events", len(runs), len(versions))
	}
	w.invariants()
}

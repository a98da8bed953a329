// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// H3: the Git service hangs while a controller that got SIGTERM posts a check. The controller
// releases the lease after leaderelection.DrainLimit, and the next one posts the check too. The
// first post takes effect later. The newest check is true, and the other one is closed as
// superseded.
func TestControllerTerminatedDuringPostIsTakenOver(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	env, first := newControllerPair(t)
	answer := make(chan struct{})
	posts := env.git.inject(createCheck, forge.Fault{Count: 1, Do: forge.Hold(answer)})
	sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("rolled", "push", held)})
	env.awaitHits(posts, 1)
	env.must(first.Terminate())
	env.awaitCheck(sha, checkName("rolled"), "in_progress", takeover)
	close(answer)
	env.requireExit(first)
	env.releaseRuns(env.awaitRunsCreated(sha))
	env.requireOneRunAndCheck(sha, "rolled")
}

// H5: during an upgrade the next version's controller takes over an event of this version and
// finishes it. After a roll-back this version's controller does the same for an event of the next
// version. Both are built from the same sources, with two version strings. Each event has one run,
// with the version that created it, and one check.
func TestControllersOfTwoVersionsShareTheWork(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1, standby: true})
	dir := t.TempDir()
	env.must(installation.Compile(env.ctx, dir, "-ldflags=-X=main.version=next", "./cmd/controller"))
	next, err := env.ControllerAt(env.ctx, filepath.Join(dir, "controller"), false, "-late-reports="+lateReports.String())
	env.must(err)
	versions := []*installation.Process{env.controller(), next}
	for i, version := range []string{"devel", "next"} {
		sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("shared", "push", held), "version": version})
		env.awaitCheck(sha, checkName("shared"), "in_progress", takeover)
		event := env.awaitRunsCreated(sha)
		if got := env.getRun(event.Status.Runs[0].Name).Labels[pipelinesascode.VersionLabel]; got != version {
			t.Errorf("the run has version %q, want %q", got, version)
		}
		env.startProcess(versions[1-i])
		env.must(versions[i].Terminate())
		env.requireExit(versions[i])
		env.releaseRuns(event)
		env.awaitCheck(sha, checkName("shared"), "success", takeover)
		env.awaitSettled(sha, afterFault)
		env.requireOneCheck(sha, checkName("shared"))
	}
	env.requireRunCount(len(versions))
	env.requireInvariants()
}

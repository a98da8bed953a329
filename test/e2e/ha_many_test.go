// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// H5, as far as one version can show it: a controller of the next version takes over an event in the middle and ends it,
// and one of this version ends what the next one began, as in an upgrade and a roll-back. Each event has one run, which
// carries the version that made it, and one check.
func TestTwoVersionsShareTheWork(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1, standby: true})
	w.claimed()
	dir := t.TempDir()
	w.must(installation.Compile(w.ctx, dir, "-ldflags=-X=main.version=next", "./cmd/controller"))
	next, err := w.ControllerAt(w.ctx, filepath.Join(dir, "controller"), false, "-late-reports="+lateReports.String())
	w.must(err)
	versions := []*installation.Process{w.controllers[0], next}
	var shas []string
	for i, madeBy := range []string{"devel", "next"} {
		sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("shared", "push", held), "i": madeBy})
		w.deliver(delivery, http.StatusAccepted)
		w.checkReaches(sha, checkName("shared"), "in_progress", takeover)
		event := w.created(sha)
		if got := w.run(event.Status.Runs[0].Name).Labels[pipelinesascode.VersionLabel]; got != madeBy {
			t.Errorf("the run says version %q, want %q", got, madeBy)
		}
		w.start(versions[1-i])
		w.must(versions[i].Terminate())
		w.ends(versions[i])
		w.release(event)
		w.checkReaches(sha, checkName("shared"), "success", takeover)
		w.settles(sha, afterFault)
		w.oneCheck(sha, checkName("shared"))
		shas = append(shas, sha)
	}
	if runs := w.runs(); len(runs) != len(shas) {
		t.Errorf("%d PipelineRuns of %d events", len(runs), len(shas))
	}
	w.invariants()
}

// terminations are SIGTERM during the first call of each kind: the call goes on and the controller ends by itself.
func terminations(calls, routes []string) (trials []trial) {
	for _, at := range points(calls) {
		if at.nth == 1 {
			trials = append(trials, trial{fault: "terminated during", at: at, arm: terminateAt, end: endsSame})
		}
	}
	for _, at := range points(routes) {
		if at.nth == 1 {
			trials = append(trials, trial{fault: "forge: terminated during", at: at, arm: terminateAtForge, end: endsSame})
		}
	}
	return trials
}

func terminateAt(l *lane, e event, at point) *armed {
	var seen, chosen atomic.Int64
	gone := make(chan struct{})
	controller := l.controllers[0]
	controller.Proxy.OnCall(func(c cluster.Call) {
		if e.made(c) && nameOf(c) == at.name && seen.Add(1) == 1 {
			chosen.Store(int64(c.N))
			l.end(controller, gone)
		}
	})
	rule := controller.Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return int64(c.N) == chosen.Load() }, Count: 1, Do: cluster.Delay(signalled)})
	return &armed{hits: rule.Hits, killed: gone}
}

func terminateAtForge(l *lane, _ event, at point) *armed {
	ctx, cancel := context.WithCancel(l.ctx)
	gone, goOn := make(chan struct{}), make(chan struct{})
	call := l.git.Inject(forge.Fault{Route: at.name, Count: 1, Do: forge.Hold(goOn)})
	go func() {
		if call.Wait(ctx, 1) == nil {
			l.end(l.controllers[0], gone)
			<-time.After(signalled)
			close(goOn)
		}
	}()
	return &armed{hits: call.Hits, killed: gone, disarm: func() {
		cancel()
		call.Remove()
	}}
}

// end sends SIGTERM and closes gone when the process has ended; one that does not end in time is for the trial to find.
func (l *lane) end(p *installation.Process, gone chan struct{}) {
	_ = p.Terminate()
	go func() {
		ctx, cancel := context.WithTimeout(l.ctx, drained)
		defer cancel()
		if p.Wait(ctx) == nil {
			close(gone)
		}
	}()
}

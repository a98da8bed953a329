// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// H6: the holder of the lease is paused for longer than its lease and the fence against late
// reports take, another controller takes over, then the first goes on. It had posted the check and
// not written that down: there is one run, and one current check that tells the truth, and after
// the pause the first holder sends nothing. The other places where a process may stop are in
// pkg/reconciler/gitevent.
func TestThePausedHolderGoesOn(t *testing.T) {
	t.Parallel()
	w, leader := newPair(t)
	stopped := w.stopAtForge(leader, forge.RouteCheckCreate)
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("paused", "push", held)})
	w.deliver(delivery, http.StatusAccepted)
	waitFor(w, stopped, "the leader stops")
	over := time.After(pausedFor)
	w.checkReaches(sha, checkName("paused"), "in_progress", takeover)
	w.eventually(takeover, "the second controller has patched the run", func() error { return w.made(w.controllers[1], "patch pipelineruns") })
	waitFor(w, over, "the pause")
	sent := len(w.git.log().requests)
	w.goesOn(leader, func() {})
	w.must(leader.Terminate()) // it ends what it is doing
	w.must(leader.Wait(w.ctx))
	if late := w.git.log().requests[sent:]; len(late) > 0 {
		t.Errorf("after the pause the first holder sent %+v", late)
	}
	w.release(w.created(sha))
	w.endsOnce(sha, "paused")
	w.oneCheck(sha, checkName("paused"))
}

// E9: two controllers reconcile one event at the same time: the first is paused in the middle, the
// second takes over, and the first goes on while the second's post of the check is under way. There
// is one run and one current check: as the second is held between its intent and its post, the
// first may post too, and then the older one is closed (I-8).
func TestTwoControllersReconcileOneEvent(t *testing.T) {
	t.Parallel()
	forEachKind(t, twoReconcile)
}

func twoReconcile(t *testing.T, on kind) {
	w, leader := newPairOn(t, on)
	stopped, release := stopAt(leader, "create pipelineruns")
	post := make(chan struct{})
	posts := w.git.inject(createCheck, forge.Fault{Count: 1, Do: forge.Hold(post)})
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("both", "push", held)})
	w.deliver(delivery, http.StatusAccepted)
	waitFor(w, stopped, "the first controller stops")
	w.must(posts.Wait(w.ctx, 1)) // the second is about to post the check
	w.goesOn(leader, release)
	close(post)
	w.checkReaches(sha, checkName("both"), "in_progress", soon)
	w.release(w.created(sha))
	w.endsOnce(sha, "both")
}

// made reports whether the process has made a call of that name.
func (w *world) made(p *installation.Process, name string) error {
	for _, call := range p.Proxy.Calls() {
		if nameOf(call) == name {
			return nil
		}
	}
	return fmt.Errorf("%s has not made the call %s", p.Name(), name)
}

// newPair is a world with two controllers, the first of which leads.
func newPair(t *testing.T) (*world, *installation.Process) {
	t.Helper()
	return newPairOn(t, githubApp)
}

func newPairOn(t *testing.T, on kind) (*world, *installation.Process) {
	t.Helper()
	w := newWorld(t, setup{service: on, receivers: 1, controllers: 1, standby: true, proxied: true})
	w.claimed()
	leader := w.controllers[0]
	w.leads()
	w.startController(true)
	return w, leader
}

// stopAt pauses the leader when its first call of that name is on its way. The call is kept until
// release is called.
func stopAt(leader *installation.Process, name string) (stopped <-chan struct{}, release func()) {
	var chosen atomic.Int64
	reached, released := make(chan struct{}), make(chan struct{})
	leader.Proxy.OnCall(func(c cluster.Call) {
		if nameOf(c) == name && chosen.CompareAndSwap(0, int64(c.N)) {
			_ = leader.Pause()
			close(reached)
		}
	})
	leader.Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return int64(c.N) == chosen.Load() }, Do: cluster.Hold(released)})
	return reached, func() { close(released) }
}

// stopAtForge pauses the leader while the answer to its first call of a route is on its way: the
// call took effect.
func (w *world) stopAtForge(leader *installation.Process, route string) (stopped <-chan struct{}) {
	reached, released := make(chan struct{}), make(chan struct{})
	call := w.forge.Inject(forge.Fault{Route: route, Count: 1, Do: forge.ApplyThenHold(released)})
	go func() {
		if call.Wait(w.ctx, 1) == nil {
			_ = leader.Pause()
			close(released) // the answer is in the paused process's socket
			close(reached)
		}
	}()
	return reached
}

// waitFor waits until the channel is closed or gives something.
func waitFor[T any](w *world, done <-chan T, what string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, afterFault)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
		w.t.Fatalf("not within %v: %s", afterFault, what)
	}
}

// goesOn lets the paused process continue and waits until it does something.
func (w *world) goesOn(p *installation.Process, release func()) {
	w.t.Helper()
	before := len(w.log(p))
	release()
	w.must(p.Continue())
	w.eventually(soon, "the paused process goes on", func() error {
		if len(w.log(p)) == before {
			return errors.New("it has logged nothing since")
		}
		return nil
	})
}

// endsOnce requires that everything settles with one run and one current check that is a success.
func (w *world) endsOnce(sha, name string) {
	w.t.Helper()
	w.checkReaches(sha, checkName(name), "success", afterFault)
	w.settles(sha, afterFault)
	if runs := w.runs(); len(runs) != 1 {
		w.t.Errorf("%d PipelineRuns, want 1", len(runs))
	}
	checks := w.git.checks(sha)
	for i, check := range checks {
		if replaced := i < len(checks)-1; check.Replaced != replaced || !replaced && check.Conclusion != "success" {
			w.t.Errorf("check %d of %d is %s %q, replaced: %t: %s", i+1, len(checks), check.Status, check.Conclusion, check.Replaced, check.Title)
		}
	}
	w.neverFailed(sha)
	w.invariants()
	if w.t.Failed() {
		w.t.Logf("all writes: %+v", w.writes(sha, ""))
	}
}

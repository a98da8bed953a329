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

// paused is one place where a leader stops.
type paused struct {
	name string
	// place makes the leader stop there; release lets its call there go on.
	place func(w *world, leader *installation.Process) (stopped <-chan struct{}, release func())
	// during is set where the call itself ends after 15 s: then the pause is just long enough for a takeover, and the
	// holder still does what it was about to do.
	during bool
}

// H6: the holder of the lease is paused for longer than its lease and the fence against late reports take, another
// controller takes over, then the first goes on. Whether it was about to create the run, had written down its intent to
// post the check, had looked for the check and found none, or had posted it and not written that down: there is one
// run, and one current check that tells the truth. After a pause beyond the fence it sends nothing.
func TestThePausedHolderGoesOn(t *testing.T) {
	t.Parallel()
	for _, p := range []paused{
		{name: "before-the-create", place: stopAt("create pipelineruns", 1, cluster.Hold)},
		{name: "intent-recorded", place: stopAt("update gitevents/status", 1, nil)},
		{name: "looked-the-check-up", place: afterALostPost(stopAtForge(forge.RouteCheckList)), during: true},
		{name: "check-posted", place: stopAtForge(forge.RouteCheckCreate)},
	} {
		t.Run(p.name, func(t *testing.T) {
			onlyInTestAllUnless(t, p.name == "check-posted")
			t.Parallel()
			w, leader := newPair(t)
			stopped, release := p.place(w, leader)
			sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("paused", "push", held)})
			w.deliver(delivery, http.StatusAccepted)
			waitFor(w, stopped, "the leader stops")
			over := time.After(pausedFor)
			w.checkReaches(sha, checkName("paused"), "in_progress", takeover)
			w.eventually(takeover, "the second controller has patched the run", func() error { return w.made(w.controllers[1], "patch pipelineruns") })
			if !p.during {
				waitFor(w, over, "the pause")
			}
			sent := len(w.git.log().requests)
			w.goesOn(leader, release)
			w.must(leader.Terminate()) // it ends what it is doing
			w.must(leader.Wait(w.ctx))
			if late := w.git.log().requests[sent:]; len(late) > 0 && !p.during {
				t.Errorf("after the pause the first holder sent %+v", late)
			}
			w.release(w.created(sha))
			w.endsOnce(sha, "paused")
			if !p.during {
				w.oneCheck(sha, checkName("paused"))
			}
		})
	}
}

// afterALostPost makes the leader look for the check, which nobody else can have posted, because it does not know what became of its
// first post: nothing.
func afterALostPost(place func(*world, *installation.Process) (<-chan struct{}, func())) func(*world, *installation.Process) (<-chan struct{}, func()) {
	return func(w *world, leader *installation.Process) (<-chan struct{}, func()) {
		w.forge.Inject(forge.Fault{Route: forge.RouteCheckCreate, Count: 1, Do: forge.ServerError502HTML()})
		return place(w, leader)
	}
}

// E9: two controllers reconcile one event at the same time: the first is paused in the middle, the second takes over,
// and the first goes on while the second's post of the check is under way. There is one run and one current check: as
// the second is held between its intent and its post, the first may post too, and then the older one is closed (I-8).
func TestTwoControllersReconcileOneEvent(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]string{"plan": "update gitevents/status", "secret": "create secrets", "run": "create pipelineruns"} {
		t.Run(name, func(t *testing.T) {
			onlyInTestAllUnless(t, name == "run")
			t.Parallel()
			forEachKind(t, func(t *testing.T, on kind) { twoReconcile(t, on, call) })
		})
	}
}

func twoReconcile(t *testing.T, on kind, call string) {
	w, leader := newPairOn(t, on)
	stopped, release := stopAt(call, 1, cluster.Hold)(w, leader)
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

// made tells whether the process has made a call of that name.
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

// stopAt pauses the leader when its nth call of that name is on its way. With hold the call is kept until release is
// called; without it lands meanwhile and its answer waits.
func stopAt(name string, nth int64, hold func(<-chan struct{}) cluster.Action) func(*world, *installation.Process) (<-chan struct{}, func()) {
	return func(w *world, leader *installation.Process) (<-chan struct{}, func()) {
		var seen, chosen atomic.Int64
		stopped, released := make(chan struct{}), make(chan struct{})
		leader.Proxy.OnCall(func(c cluster.Call) {
			if nameOf(c) == name && seen.Add(1) == nth {
				chosen.Store(int64(c.N))
				_ = leader.Pause()
				close(stopped)
			}
		})
		if hold != nil {
			leader.Proxy.Add(cluster.Rule{Match: func(c cluster.Call) bool { return int64(c.N) == chosen.Load() }, Do: hold(released)})
		}
		return stopped, func() { close(released) }
	}
}

// stopAtForge pauses the leader while the answer to its first call of a route is on its way: the call took effect.
func stopAtForge(route string) func(*world, *installation.Process) (<-chan struct{}, func()) {
	return func(w *world, leader *installation.Process) (<-chan struct{}, func()) {
		stopped, released := make(chan struct{}), make(chan struct{})
		call := w.forge.Inject(forge.Fault{Route: route, Count: 1, Do: forge.ApplyThenHold(released)})
		go func() {
			if call.Wait(w.ctx, 1) == nil {
				_ = leader.Pause()
				close(released) // the answer is in the paused process's socket
				close(stopped)
			}
		}()
		return stopped, func() {}
	}
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

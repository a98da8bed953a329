// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// H6: the lease's holder is paused for longer than its lease and the fence against late reports.
// Another controller takes over, then the first continues. It had posted the check without
// recording that. There is one run and one current, correct check, and after the pause the first
// holder sends nothing. Tests of pkg/reconciler/gitevent pause at the other calls.
func TestPausedLeaderSendsNothingStale(t *testing.T) {
	t.Parallel()
	env, leader := newControllerPair(t)
	stopped := env.pauseAtForge(leader, forge.RouteCheckCreate)
	sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("paused", "push", held)})
	waitFor(env, stopped, "the leader stops")
	over := time.After(pausedFor)
	env.awaitCheck(sha, checkName("paused"), "in_progress", takeover)
	env.eventually(takeover, "the second controller has patched the run",
		func() error { return env.hasCalled(env.controllers[1], "patch pipelineruns") })
	waitFor(env, over, "the pause")
	sent := len(env.git.log().requests)
	env.resume(leader, func() {})
	env.must(leader.Terminate()) // it finishes its work first
	env.must(leader.Wait(env.ctx))
	if late := env.git.log().requests[sent:]; len(late) > 0 {
		t.Errorf("after the pause the first holder sent %+v", late)
	}
	env.releaseRuns(env.awaitRunsCreated(sha))
	env.requireOneRunAndCheck(sha, "paused")
	env.requireOneCheck(sha, checkName("paused"))
}

// E9: two controllers reconcile one event at the same time. The first is paused in the middle, the
// second takes over, and the first continues while the second posts the check. There is one run
// and one current check. The second is held between its intent and its post, so the first may post
// too; then the older check is closed (I-8).
func TestTwoControllersReconcileOneEvent(t *testing.T) {
	forEachKind(t, twoReconcile)
}

func twoReconcile(t *testing.T, on kind) {
	env, leader := newControllerPairOn(t, on)
	stopped, release := pauseAt(leader, "create pipelineruns")
	post := make(chan struct{})
	posts := env.git.inject(createCheck, forge.Fault{Count: 1, Do: forge.Hold(post)})
	sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("both", "push", held)})
	waitFor(env, stopped, "the first controller stops")
	env.must(posts.Wait(env.ctx, 1)) // the second starts to post the check
	env.resume(leader, release)
	close(post)
	env.awaitCheck(sha, checkName("both"), "in_progress", soon)
	env.releaseRuns(env.awaitRunsCreated(sha))
	env.requireOneRunAndCheck(sha, "both")
}

// hasCalled reports whether the process has made a call of that name.
func (env *environment) hasCalled(p *installation.Process, name string) error {
	for _, call := range p.Proxy.Calls() {
		if nameOf(call) == name {
			return nil
		}
	}
	return fmt.Errorf("%s has not made the call %s", p.Name(), name)
}

// newControllerPair returns an environment with two controllers, the first of which leads.
func newControllerPair(t *testing.T) (*environment, *installation.Process) {
	t.Helper()
	return newControllerPairOn(t, githubApp)
}

func newControllerPairOn(t *testing.T, on kind) (*environment, *installation.Process) {
	t.Helper()
	env := newClaimedEnvironment(t, setup{service: on, receivers: 1, controllers: 1, standby: true, proxied: true})
	leader := env.controllers[0]
	env.awaitLeases()
	env.startController(true)
	return env, leader
}

// pauseAt pauses the leader during its first call of that name. The proxy holds the call until
// release is called.
func pauseAt(leader *installation.Process, name string) (stopped <-chan struct{}, release func()) {
	var chosen atomic.Int64
	reached, released := make(chan struct{}), make(chan struct{})
	leader.Proxy.OnCall(func(c cluster.Call) {
		if nameOf(c) == name && chosen.CompareAndSwap(0, int64(c.N)) {
			_ = leader.Pause()
			close(reached)
		}
	})
	leader.Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return int64(c.N) == chosen.Load() }, Do: cluster.Hold(released),
	})
	return reached, func() { close(released) }
}

// pauseAtForge pauses the leader after its first call of a route took effect and before its answer
// arrives.
func (env *environment) pauseAtForge(leader *installation.Process, route string) (stopped <-chan struct{}) {
	reached, released := make(chan struct{}), make(chan struct{})
	call := env.forge.Inject(forge.Fault{Route: route, Count: 1, Do: forge.ApplyThenHold(released)})
	go func() {
		if call.Wait(env.ctx, 1) == nil {
			_ = leader.Pause()
			close(released) // the answer waits in the paused process's socket
			close(reached)
		}
	}()
	return reached
}

// waitFor waits until the channel is closed or gets a value.
func waitFor[T any](env *environment, done <-chan T, what string) {
	env.t.Helper()
	ctx, cancel := context.WithTimeout(env.ctx, afterFault)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
		env.t.Fatalf("not within %v: %s", afterFault, what)
	}
}

// resume lets the paused process continue and waits until it does something.
func (env *environment) resume(p *installation.Process, release func()) {
	env.t.Helper()
	before := len(env.processLog(p))
	release()
	env.must(p.Continue())
	env.eventually(soon, "the paused process goes on", func() error {
		if len(env.processLog(p)) == before {
			return errors.New("it has logged nothing since")
		}
		return nil
	})
}

// requireOneRunAndCheck requires that everything settles with one run and one current check that
// succeeded.
func (env *environment) requireOneRunAndCheck(sha, name string) {
	env.t.Helper()
	env.awaitCheck(sha, checkName(name), "success", afterFault)
	env.awaitSettled(sha, afterFault)
	env.requireRunCount(1)
	checks := env.git.checks(sha)
	for i, check := range checks {
		if replaced := i < len(checks)-1; check.Replaced != replaced || !replaced && check.Conclusion != "success" {
			env.t.Errorf("check %d of %d is %s %q, replaced: %t: %s", i+1, len(checks), check.Status, check.Conclusion,
				check.Replaced, check.Title)
		}
	}
	env.requireNoFailure(sha)
	env.requireInvariants()
	if env.t.Failed() {
		env.t.Logf("all writes: %+v", env.checkWrites(sha, ""))
	}
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// everyClass tries every class of answers at every call of D2, which takes about 40 minutes more.
var everyClass = flag.Bool("every-class", false, "every call meets every class of answers")

// denial is the message of the admission webhook of D2.
const denial = "this object is not to the liking of the test"

// C9: a controller is killed at any call for an event, to the API server or to the Git service,
// before or after the call took effect, or gets SIGTERM during a call (H3). After a restart it
// leaves the same cluster and the same checks.
func TestControllerKilledAtEveryCall(t *testing.T) {
	forEachKind(t, func(t *testing.T, on kind) {
		all, calls := newTrialRunners(t, on)
		var kills, terminations []trial
		ends := func(fault string, at callPoint, arm func(*trialRunner, event, callPoint) *armedFault) trial {
			return trial{fault: fault, at: at, arm: arm, end: sameEnd}
		}
		for _, at := range points(calls) {
			kills = append(kills, ends("killed before", at, endAt((*trialRunner).killController, cluster.Drop())),
				ends("killed after", at, endAt((*trialRunner).killController, cluster.ApplyThenDrop())))
			if at.nth == 1 {
				terminations = append(terminations,
					ends("terminated during", at, endAt((*trialRunner).terminateController, cluster.Delay(signalled))))
			}
		}
		for _, at := range points(all[0].forgeCalls()) {
			kills = append(kills, ends("forge: killed before", at, endAtForge((*trialRunner).killController, forge.Hold(nil))),
				ends("forge: killed after", at, endAtForge((*trialRunner).killController, forge.ApplyThenHold(nil))))
			if at.nth == 1 {
				terminations = append(terminations,
					ends("forge: terminated during", at, endAtForge((*trialRunner).terminateController, forge.Delay(signalled))))
			}
		}
		runTrials(t, "C9 on "+string(on), all, append(kills, terminations...))
	})
}

// D2: any call for an event gets any answer from the API server, once or for three seconds, and
// also a lost answer after the call took effect. The end is that of an event without faults. Only
// a denial of the PipelineRun's creation is the author's error: the check then fails with its
// words. The classes of answers take turns: every call gets one class once and another one for
// three seconds, and the creation also the denial. With -every-class (make every-call) every call
// gets every class.
func TestEveryCallFails(t *testing.T) {
	forEachKind(t, func(t *testing.T, on kind) {
		all, calls := newTrialRunners(t, on)
		var trials []trial
		for _, at := range points(calls) {
			for i, f := range apiFaults() {
				denied := f.invalid && at.name == "create pipelineruns"
				if *everyClass || denied || takesTurn(at, on, i, len(apiFaults())) {
					trials = append(trials, f.trial(at, "once", cluster.Rule{Count: 1, Do: f.do}))
				}
				if !f.applied && (*everyClass || takesTurn(at, on, i, len(apiFaults())-1)) {
					trials = append(trials, f.trial(at, fmt.Sprintf("for %v", outage), cluster.Rule{For: outage, Do: f.do}))
				}
			}
		}
		runTrials(t, "D2 on "+string(on), all, trials)
	})
}

// takesTurn reports whether class i is tried at a point. The two services have different turns.
func takesTurn(at callPoint, on kind, i, classes int) bool {
	k := at.k
	if on == githubApp {
		k += classes / 2
	}
	return k%classes == i
}

// apiFault is what the API server does instead of answering.
type apiFault struct {
	name string
	do   cluster.Action
	// invalid and operator say what the answer means where it is final: at the creation of the
	// PipelineRun, and at the reading of what a report can do without.
	invalid, operator bool
	// applied: the call takes effect.
	applied bool
}

// apiFaults returns one fault of each class of pkg/fault that the API server can cause, and a lost
// answer.
func apiFaults() []apiFault {
	return []apiFault{
		{name: "Transient (the webhook refuses connections)", do: cluster.Fault(cluster.WebhookRefused())},
		{name: "Transient (the connection is dropped)", do: cluster.Drop()},
		{name: "Throttled (429 with Retry-After)", do: cluster.Fault(cluster.TooManyRequests())},
		{name: "Conflict (409)", do: cluster.Fault(cluster.Conflict("it"))},
		{name: "Operator (403 of RBAC)", do: cluster.Fault(cluster.Forbidden("plumbline", "do", "ci")), operator: true},
		{name: "Invalid (400 of a webhook)", do: cluster.Fault(cluster.WebhookDenied(denial)), invalid: true, operator: true},
		{name: "applied, then the answer is lost", do: cluster.ApplyThenDrop(), applied: true},
	}
}

// trial returns the trial of the fault at a point. While the fault lasts longer than that call,
// the controller can write neither a refusal nor a report without its table. Then the end is that
// of an event without faults.
func (f apiFault) trial(at callPoint, lasts string, rule cluster.Rule) trial {
	end := sameEnd
	switch {
	case f.invalid && rule.Count == 1 && at.name == "create pipelineruns":
		end = refusedEnd
	case f.operator && rule.Count == 1 && at.name == "list taskruns":
		end = sameEndWithoutTable
	}
	return trial{fault: f.name + " " + lasts, at: at, arm: failAt(rule), end: end}
}

// newTrialRunners starts the runners and returns the calls of an event without faults: the fewest
// that any runner saw.
func newTrialRunners(t *testing.T, on kind) (all []*trialRunner, calls []string) {
	t.Helper()
	for range amount(2, 4) {
		l := newTrialRunner(t, on)
		if calls == nil || len(l.calls) < len(calls) { // calls that only a slow runner makes are left out
			calls = l.calls
		}
		all = append(all, l)
	}
	for _, l := range all[1:] {
		if err := sameEnd(l.free, all[0].free); err != nil {
			t.Fatalf("two fault-free events end differently: %v", err)
		}
	}
	t.Logf("an event without a fault makes %d calls: %q", len(calls), calls)
	return all, calls
}

// failAt applies the rule from the point on to every call for the event, for as long as the rule
// lasts.
func failAt(rule cluster.Rule) func(*trialRunner, event, callPoint) *armedFault {
	return func(l *trialRunner, e event, at callPoint) *armedFault {
		var seen atomic.Int64
		rule := rule
		rule.Match = func(c cluster.Call) bool {
			if !e.isMadeBy(c) {
				return false
			}
			return seen.Load() >= int64(at.nth) || nameOf(c) == at.name && seen.Add(1) == int64(at.nth)
		}
		return &armedFault{hits: l.controllers[0].Proxy.Add(rule).Hits}
	}
}

// endAt ends the controller when the call has arrived at the proxy, then applies the action to the
// call.
func endAt(end func(*trialRunner, chan<- struct{}),
	do cluster.Action) func(*trialRunner, event, callPoint) *armedFault {
	return func(l *trialRunner, e event, at callPoint) *armedFault {
		var seen, chosen atomic.Int64
		gone := make(chan struct{})
		proxy := l.controllers[0].Proxy
		proxy.OnCall(func(c cluster.Call) {
			if e.isMadeBy(c) && nameOf(c) == at.name && seen.Add(1) == int64(at.nth) {
				chosen.Store(int64(c.N))
				end(l, gone)
			}
		})
		rule := proxy.Add(cluster.Rule{
			Match: func(c cluster.Call) bool { return int64(c.N) == chosen.Load() }, Count: 1, Do: do,
		})
		return &armedFault{hits: func() int { return max(rule.Hits(), int(min(chosen.Load(), 1))) }, killed: gone}
	}
}

// endAtForge ends the controller while its call to the forge waits for its answer, before or after
// it took effect.
func endAtForge(end func(*trialRunner, chan<- struct{}),
	do forge.Action) func(*trialRunner, event, callPoint) *armedFault {
	return func(l *trialRunner, _ event, at callPoint) *armedFault {
		ctx, cancel := context.WithCancel(l.ctx)
		gone := make(chan struct{})
		call := l.git.Inject(forge.Fault{Route: at.name, From: at.nth, Count: 1, Do: do})
		go func() {
			if call.Wait(ctx, 1) == nil {
				end(l, gone)
			}
		}()
		return &armedFault{hits: call.Hits, killed: gone, disarm: func() {
			cancel()
			call.Remove()
		}}
	}
}

func (l *trialRunner) killController(gone chan<- struct{}) {
	_ = l.controllers[0].Kill()
	close(gone)
}

// terminateController sends SIGTERM and closes gone when the process has ended. The trial detects
// one that does not end in time.
func (l *trialRunner) terminateController(gone chan<- struct{}) {
	_ = l.controllers[0].Terminate()
	go func() {
		ctx, cancel := context.WithTimeout(l.ctx, drained)
		defer cancel()
		if l.controllers[0].Wait(ctx) == nil {
			close(gone)
		}
	}()
}

// forgeCalls returns the routes that a new controller, which has no token yet, calls for one
// event.
func (l *trialRunner) forgeCalls() []string {
	l.t.Helper()
	l.must(l.restart(l.ctx))
	from := len(l.git.log().requests)
	l.must(errOf(l.attempt(trial{})))
	var routes []string
	for _, request := range l.git.log().requests[from:] {
		routes = append(routes, request.Route)
	}
	return routes
}

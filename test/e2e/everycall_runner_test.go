// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// trialRunner runs one trial after the other in an environment, each with its own commit and
// delivery. Several run in parallel outside of the test's goroutine, so their methods return
// errors.
type trialRunner struct {
	*environment
	free   finalState // the state after an event without faults
	calls  []string   // the last event's, to the API server
	events int        // the number of events
}

// trial is one pair of a call and a fault: what to arm before the delivery, and what must be left
// at the end.
type trial struct {
	fault string
	at    callPoint
	arm   func(l *trialRunner, e event, at callPoint) *armedFault
	// end compares what is left with the state after an event without faults.
	end func(got, free finalState) error
}

// callPoint is the k-th call of an event without faults. It is found again as the nth call of its
// name: the number of informer events in between shifts k, but not that.
type callPoint struct {
	k, nth int
	name   string
}

func (t trial) String() string {
	return fmt.Sprintf("%s, call %d (%s, number %d)", t.fault, t.at.k, t.at.name, t.at.nth)
}

// optional reports whether an event without faults may do without the call: two changes of a run
// may wake the controller once.
func (p callPoint) optional() bool { return p.name == "get gitevents" && p.nth > 1 }

// points names the calls of an event without faults.
func points(calls []string) []callPoint {
	seen := map[string]int{}
	out := make([]callPoint, 0, len(calls))
	for k, name := range calls {
		seen[name]++
		out = append(out, callPoint{k: k + 1, nth: seen[name], name: name})
	}
	return out
}

// event is what a trial delivers.
type event struct {
	name, sha string
	delivery  delivery
}

// armedFault is a trial's fault in place.
type armedFault struct {
	// hits returns how many calls it acted on.
	hits func() int
	// killed is closed when the controller is dead and the call it died at is done; nil when
	// nothing is killed.
	killed <-chan struct{}
	// disarm removes what Proxy.Reset does not; it may be nil.
	disarm func()
}

// errNotReached is returned by a trial whose k-th call was never made.
var errNotReached = errors.New("the event ended without a k-th call")

const (
	// attempts is how often a trial is run until its k-th call is made: two informer events may
	// share a reconcile, so that one event makes a call or two less than another.
	attempts = 4
)

// newTrialRunner starts an environment and runs events without faults to learn their end and their
// calls.
func newTrialRunner(t *testing.T, on kind) *trialRunner {
	t.Helper()
	env := newEnvironment(t, setup{service: on, receivers: 1})
	env.startController(true, "-operator-retry="+operatorRetry.String())
	env.awaitClaimed()
	l := &trialRunner{environment: env}
	env.must(errOf(l.attempt(trial{}))) // its token is cached for the next trials
	e, err := l.attempt(trial{})
	env.must(err)
	l.free, err = l.finalState(e)
	env.must(err)
	return l
}

// newEvent makes a commit and its delivery. The definitions have to be read, because the file
// differs each time.
func (l *trialRunner) newEvent() (event, error) {
	l.events++
	sha, delivery := l.push(map[string]string{
		".tekton/push.yaml": onTekton(pipeline("hello", "push")) + fmt.Sprintf("\n# event %d\n", l.events),
	})
	return event{sha: sha, delivery: delivery, name: recordName(l.git, delivery)}, nil
}

// isMadeBy reports whether a controller made the call for the event, and not for its leases,
// informers, settings, sweep, Repositories, preflight or copies of webhook secrets.
func (e event) isMadeBy(c cluster.Call) bool {
	if strings.HasSuffix(c.UserAgent, "/preflight") || isBackgroundCall(c) {
		return false
	}
	switch c.Resource {
	case "gitevents":
		return c.Name == e.name && c.Verb != "list" && c.Verb != "watch"
	case "eventpayloads", "secrets", "pipelineruns", "tasks":
		return c.Verb != "list" && c.Verb != "watch"
	case "taskruns":
		return c.Verb == "list"
	}
	return false
}

func nameOf(c cluster.Call) string {
	return strings.TrimSuffix(c.Verb+" "+c.Resource+"/"+c.Subresource, "/")
}

// run repeats a trial until its k-th call was made, and requires the right end.
func (l *trialRunner) run(t trial) error {
	for range attempts {
		e, err := l.attempt(t)
		if errors.Is(err, errNotReached) {
			err = l.restart(l.ctx) // a new controller mints a token again
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		got, err := l.finalState(e)
		if err != nil {
			return err
		}
		return t.end(got, l.free)
	}
	return errNotReached
}

// attempt delivers one event under the trial's fault and waits until it is settled.
func (l *trialRunner) attempt(t trial) (event, error) {
	ctx, cancel := context.WithTimeout(l.ctx, trialLimit)
	defer cancel()
	e, err := l.newEvent()
	if err != nil {
		return e, err
	}
	a := &armedFault{hits: func() int { return 1 }}
	if t.arm != nil {
		a = t.arm(l, e, t.at)
	}
	defer l.disarm(a, e)
	if status, body, err := l.git.deliver(ctx, l.receivers[0].URL, e.delivery); err != nil || status != 202 {
		return e, fmt.Errorf("delivery: %d %s %w", status, body, err)
	}
	if err := l.awaitSettledEvent(ctx, a, e); err != nil {
		return e, err
	}
	if a.hits() == 0 {
		return e, errNotReached
	}
	return e, nil
}

// restart starts the controller without a wait for its leases, and kills it first if it still
// runs.
func (l *trialRunner) restart(ctx context.Context) error {
	if err := l.controllers[0].Kill(); err != nil {
		return err
	}
	if err := l.deleteLeases(ctx); err != nil {
		return err
	}
	return l.controllers[0].Start(ctx)
}

// disarm ends the trial's fault and stores the calls that its event made.
func (l *trialRunner) disarm(a *armedFault, e event) {
	proxy := l.controllers[0].Proxy
	l.calls = nil
	for _, call := range proxy.Calls() {
		if e.isMadeBy(call) {
			l.calls = append(l.calls, nameOf(call))
		}
	}
	proxy.Reset()
	l.restartKilled(a)
	if a.disarm != nil {
		a.disarm()
	}
}

// restartKilled starts a controller that was killed at a call after the event was settled.
func (l *trialRunner) restartKilled(a *armedFault) {
	if a.killed == nil || a.hits() == 0 {
		return
	}
	select {
	case <-a.killed:
	case <-time.After(soon):
	}
	if !l.controllers[0].Running() {
		if err := l.restart(l.ctx); err != nil {
			l.t.Error(err)
		}
	}
}

// awaitSettledEvent polls until the event is settled, and restarts the controller when the trial
// has killed it.
func (l *trialRunner) awaitSettledEvent(ctx context.Context, a *armedFault, e event) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	killed := a.killed
	for {
		found, err := l.Plumbline.PlumblineV1alpha1().GitEvents(l.Namespace).Get(ctx, e.name, metav1.GetOptions{})
		if err == nil && found.Settled() && (killed == nil || a.hits() == 0) {
			return nil
		}
		select {
		case <-killed:
			killed = nil
			if err := l.restart(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("conditions %v, waits %v", found.Status.Conditions, found.Status.Waits)
			}
			return fmt.Errorf("event %s is not settled: %w", e.name, err)
		case <-tick.C:
		}
	}
}

// runTrials runs all trials, or in make test a fixed third of them, and reports each with a wrong
// end.
func runTrials(t *testing.T, scenario string, all []*trialRunner, trials []trial) {
	t.Helper()
	if testing.Short() && !*everyClass {
		i := 0
		trials = slices.DeleteFunc(trials, func(trial) bool { i++; return i%3 != 1 })
	}
	started := time.Now()
	var next atomic.Int64
	ended := make([]error, len(trials))
	var running sync.WaitGroup
	for _, l := range all {
		running.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(trials); i = next.Add(1) - 1 {
				ended[i] = l.run(trials[i])
			}
		})
	}
	running.Wait()
	made := len(trials)
	for i, err := range ended {
		if errors.Is(err, errNotReached) && trials[i].at.optional() {
			made--
			t.Logf("never made, as may be: %v", trials[i])
		} else if err != nil {
			t.Errorf("%v: %v", trials[i], err)
		}
	}
	line := fmt.Sprintf("%s: %d (k, fault) pairs in %v on %d installations", scenario, made,
		time.Since(started).Round(time.Second), len(all))
	t.Log(line)
	fmt.Println(line)
	for _, l := range all {
		l.requireInvariants()
	}
}

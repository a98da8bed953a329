// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// share is which part of the calls of a command's event the controller is killed at; each command has another part. With -every-class
// (make every-call) it is killed at all.
const share = 8

// C9 for what people ask for: a controller that is killed at a call of a command's event, after the call took effect, and started again,
// starts one set of runs, or ends the same ones. The unit tests of pkg/reconciler/gitevent fail every call in every way.
func TestKilledAtCallsOfACommand(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	forEachKind(t, func(t *testing.T, on kind) {
		w := newWorld(t, setup{service: on, receivers: 1})
		w.startController(true, "-operator-retry="+operatorRetry.String())
		w.claimed()
		w.git.grant("dev", "write")
		w.git.commit("main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request")}})
		l, trials, started := &lane{world: w}, 0, time.Now() // its events are those of which it died
		for i, c := range l.asks() {
			var calls []string
			for _, at := range points(l.asked(c, nil)) {
				if !*everyClass && at.k%share != i%share || at.mayMiss() {
					continue
				}
				calls = append(calls, at.name)
				l.asked(c, &at)
			}
			trials += len(calls)
			t.Logf("%s: killed after %q", c.what, calls)
		}
		fmt.Printf("C9 of commands on %s: killed at %d of %d calls in %v\n", on, l.events, trials, time.Since(started).Round(time.Second))
		if l.events == 0 { // how often an informer wakes it shifts some
			t.Error("it was never killed")
		}
		w.invariants()
	})
}

// ask is one thing that people ask for.
type ask struct {
	what string
	// begin makes what is asked about, and returns the delivery that asks; check looks at what has become of it.
	begin func() delivery
	check func(record v1alpha1.GitEvent, made []pipelinev1.PipelineRun)
}

// asks are all that start or end runs.
func (l *lane) asks() []ask {
	w, n := l.world, 0
	started := func(outcome v1alpha1.Outcome, approved bool) func(v1alpha1.GitEvent, []pipelinev1.PipelineRun) {
		return func(record v1alpha1.GitEvent, made []pipelinev1.PipelineRun) {
			if runs := record.Status.Runs; len(runs) != 1 || runs[0].Result == nil || runs[0].Result.Outcome != outcome || len(made) != 1 || (record.Status.Plan.Approval != nil) != approved {
				w.t.Errorf("%d PipelineRuns, the record says %+v, approval %+v", len(made), runs, record.Status.Plan.Approval)
			}
		}
	}
	var sha string
	ended := func(record v1alpha1.GitEvent, made []pipelinev1.PipelineRun) {
		w.checkReaches(sha, checkName("pr"), "cancelled", soon)
		w.settled(soon)
		if len(made) != 0 || record.Status.Disposition != v1alpha1.DispositionCancels {
			w.t.Errorf("%d PipelineRuns of what cancels: %+v", len(made), record.Status)
		}
	}
	pull := func(annotations ...string) (number int) {
		n++
		branch := fmt.Sprint("topic-", n)
		sha = w.git.commit(branch, forge.Change{Author: "dev", Message: branch, Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request", annotations...)}})
		number = w.git.open("", branch, "dev")
		w.deliver(w.opened(number), http.StatusAccepted)
		return number
	}
	running := func() int {
		number := pull(held)
		w.checkReaches(sha, checkName("pr"), "in_progress", soon)
		return number
	}
	good, bad := pull(), pull(fails)
	w.settled(soon)
	return []ask{
		{"/test", func() delivery { return w.commands(good, "dev", "/test") }, started(v1alpha1.OutcomeSucceeded, false)},
		{"/retest", func() delivery { return w.commands(bad, "dev", "/retest") }, started(v1alpha1.OutcomeFailed, false)},
		{"/ok-to-test", func() delivery {
			n++
			number, sha := w.forkPull(fmt.Sprint("stranger-", n))
			w.deliver(w.opened(number), http.StatusAccepted)
			w.settled(soon)
			return w.commands(number, "dev", "/ok-to-test "+sha)
		}, started(v1alpha1.OutcomeSucceeded, true)},
		{"/cancel", func() delivery { return w.commands(running(), "dev", "/cancel") }, ended},
		{"close", func() delivery { return w.closes(running(), false) }, ended},
	}
}

// asked has somebody ask, kills the controller at a call of the event, if there is one, and starts it again. It returns the calls of the event.
func (l *lane) asked(c ask, at *point) []string {
	l.t.Helper()
	d := c.begin()
	l.controllers[0].Proxy.Reset() // what it called for what is asked about does not count
	e := event{name: recordName(l.git, d), delivery: d}
	a := &armed{hits: func() int { return 1 }}
	if at != nil {
		a = killAt(cluster.ApplyThenDrop())(l, e, *at)
	}
	ctx, cancel := context.WithTimeout(l.ctx, trialLimit)
	defer cancel()
	l.deliver(d, http.StatusAccepted)
	l.must(l.settledEvent(ctx, a, e))
	if a.hits() > 0 && at != nil {
		l.events++
	}
	l.disarm(a, e)
	var made []pipelinev1.PipelineRun
	for _, run := range l.runs() {
		if run.Labels[plumbline.EventLabel] == e.name {
			made = append(made, run)
		}
	}
	c.check(l.recordOf(d), made)
	if l.t.Failed() {
		l.t.Fatalf("%s, killed at %+v", c.what, at)
	}
	return l.calls
}

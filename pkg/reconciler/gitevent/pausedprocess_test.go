// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"testing"
	"time"

	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/fake"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// successor returns another process on the same cluster, with its own clients: it can work while a
// call of the first one is answered.
func (w *env) successor() (reconcile func()) { return w.successorOf("push-1") }

// successorOf returns one that reconciles an event.
func (w *env) successorOf(event string) (reconcile func()) {
	own, tekton, kube := fake.NewSimpleClientset(), tektonfake.NewSimpleClientset(), kubefake.NewSimpleClientset()
	tekton.PrependReactor("*", "*", clienttesting.ObjectReaction(w.tekton.Tracker()))
	tekton.PrependReactor("create", "pipelineruns", w.identify)
	own.PrependReactor("*", "*", w.version(w.own.Tracker()))
	kube.PrependReactor("*", "*", clienttesting.ObjectReaction(w.kube.Tracker()))
	c := newCaches()
	r := w.newProcess(c, deps.Cluster{
		Plumbline: own.PlumblineV1alpha1(),
		PaC:       own.PipelinesascodeV1alpha1(),
		Tekton: deps.Tekton{
			TektonV1Interface: tekton.TektonV1(),
		},
		Kube: deps.Kube{CoreV1Interface: kube.CoreV1(), Logs: kube.CoreV1()},
	}, "successor", func(string, time.Duration) {})
	return func() {
		w.fill(c)
		_ = r.Reconcile(w.t.Context(), system+"/"+event)
	}
}

// stop is where a process is paused, and what another one does meanwhile.
type stop struct {
	reconcile, call int           // before so many calls of that reconcile
	pause           time.Duration // each reconcile of the other one takes so long
	reconciles      int           // so many of them; the run ends after the first
}

// pausedAt lets a process start the event, pauses it, and lets it go on for some reconciles. Then
// the other process finishes the event. It reports whether the process reached the call at which it
// is paused.
func (w *env) pausedAt(at stop) (came bool) {
	first, successor := w.uncounted(w.process), w.successor()
	calls, armed := 0, false
	before := func() {
		calls++
		if !armed || came || calls != at.call {
			return
		}
		came = true
		for range at.reconciles {
			successor()
			w.clock.SetTime(w.clock.Now().Add(at.pause))
			w.finishRuns(corev1.ConditionTrue)
		}
	}
	w.asked = func(action clienttesting.Action) error {
		before()
		for _, run := range w.runs() {
			if !run.IsDone() && action.Matches("delete", "secrets") {
				w.t.Error("the secret of a run in progress is deleted")
			}
		}
		return nil
	}
	w.git.asked = func(status.Check) error { before(); return nil }
	for i := range 5 {
		w.hook = nil
		if at.reconcile == 1 && i == 0 { // the run waits first, so that there is a check to go on with
			w.hook = always("create pipelineruns", errRefused)
		}
		if i == 2 {
			w.finishRuns(corev1.ConditionTrue)
		}
		if i == at.reconcile {
			calls, armed = 0, true
		}
		w.fill(w.caches)
		_ = first.Reconcile(w.t.Context(), system+"/push-1")
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	w.asked, w.git.asked = nil, nil
	for range 8 {
		w.finishRuns(corev1.ConditionTrue)
		successor()
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
	}
	return came
}

// H6, H3: a process is paused before any of its calls, for a minute, or for seconds after it has
// released its lease. Another process works meanwhile: it creates the run, or finishes the event.
// Whatever the first one does when it goes on, there is one run, its newest check has its result,
// and its secret exists until then.
func TestProcessPausedAtAnyCallBreaksNothing(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]stop{
		"for a minute": {pause: time.Minute, reconciles: 1}, "until the event is over": {pause: time.Minute, reconciles: 5},
		"for a second": {pause: time.Second, reconciles: 1}, "until the run is over": {pause: time.Second, reconciles: 3},
	} {
		for i := range 3 * 14 {
			at := stop{i / 14, i%14 + 1, at.pause, at.reconciles}
			t.Run(fmt.Sprintf("%s/in reconcile %d before call %d", name, at.reconcile+1, at.call), func(t *testing.T) {
				t.Parallel()
				w := newEnv(t, helloFile("hello"))
				if !w.pausedAt(at) && at.call < 6 {
					t.Error("it was not stopped")
				}
				newest := w.git.checks[fmt.Sprint(len(w.git.checks))]
				if runs := len(w.runs()); runs != 1 || newest.Conclusion != status.Success || !w.event().Settled() {
					t.Errorf("%d runs, the newest of %d checks says %q, waits %v", runs, len(w.git.checks), newest.Title,
						w.event().Status.Waits)
				}
				if n := w.secrets(); n != 1 && !w.event().Status.LateSecrets {
					t.Errorf("%d secrets are left, and the sweep is not told", n)
				}
			})
		}
	}
}

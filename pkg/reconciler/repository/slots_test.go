// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// queued returns an env with events e0, e1 and so on with one run each, in that order.
func queued(t *testing.T, limit, events int) *env {
	app := repo("one", "app", appURL)
	if limit > 0 {
		app.Spec.ConcurrencyLimit = &limit
	}
	w := newEnv(t, app, claimed(appURL, "one", "app", nil))
	for i := range events {
		e := waiting(fmt.Sprint("e", i))
		e.Spec.ReceivedAt = metav1.NewTime(start.Add(time.Duration(i) * time.Second))
		e.Status.Runs = []v1alpha1.Run{{Namespace: "one", Name: fmt.Sprint("r", i)}}
		w.events = append(w.events, e)
		w.must(w.client.Tracker().Add(e))
	}
	return w
}

func (w *env) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// runs is the cache of PipelineRuns.
func (w *env) runs() cache.Indexer { return w.r.runs.(cache.Indexer) }

// wantQueue reconciles, and checks the runs that have slots and the numbers.
func (w *env) wantQueue(running, queued int, slots ...string) time.Duration {
	w.Helper()
	after := w.reconcile("one/app")
	s := w.repository("one", "app").Status
	var got []string
	for _, slot := range s.Slots() {
		got = append(got, slot.Run)
	}
	if s.Running == nil || *s.Running != running || *s.Queued != queued || fmt.Sprint(got) != fmt.Sprint(slots) {
		w.Errorf("slots of %v, %+v; want %v, %d running and %d queued", got, s.Queues, slots, running, queued)
	}
	return after
}

// ran stores the result of the run of an event.
func (w *env) ran(i int, change func(*v1alpha1.Run)) {
	w.Helper()
	change(&w.events[i].Status.Runs[0])
	w.must(w.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), w.events[i], systemNS))
}

func ended(run *v1alpha1.Run) {
	run.UID, run.Result = types.UID("uid-"+run.Name), &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}
}

// Slots are given in order, whatever the limit becomes. A lower limit takes none away, and runs
// from before the limit count.
func TestSlotsFollowTheLimit(t *testing.T) {
	w := queued(t, 0, 8)
	w.ran(5, func(run *v1alpha1.Run) { run.UID = "uid" })
	w.reconcile("one/app")
	if s := w.repository("one", "app").Status; s.Running != nil || s.Queues != nil {
		t.Fatalf("without a limit the status has %+v", s.Queues)
	}
	limit := func(n int) {
		changed := w.repository("one", "app")
		changed.Spec.ConcurrencyLimit = &n
		w.must(w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), changed, "one"))
	}
	limit(1)
	w.wantQueue(1, 7, "r5")
	limit(3)
	if after := w.wantQueue(3, 5, "r5", "r0", "r1"); after != slotsEvery {
		t.Errorf("a queue is reconciled again after %v", after)
	}
	limit(2)
	w.wantQueue(3, 5, "r5", "r0", "r1")
	w.ran(0, ended)
	w.wantQueue(2, 5, "r5", "r1")
	w.ran(1, func(run *v1alpha1.Run) { run.Refused = &v1alpha1.Refusal{Reason: "Denied"} })
	w.wantQueue(2, 4, "r5", "r2")
	w.writes()
	w.wantQueue(2, 4, "r5", "r2")
	if wrote := w.writes(); len(wrote) > 0 {
		t.Errorf("without a change it wrote %v", wrote)
	}
	limit(0)
	w.reconcile("one/app")
	if s := w.repository("one", "app").Status; s.Running != nil || s.Queued != nil || s.Queues != nil {
		t.Errorf("without a limit the status has %+v", s)
	}
}

// F3: the slot of a finished run is released although its end cannot be recorded. A run that is
// missing in the cache keeps its slot, because its labels may have changed.
func TestFinishedRunReleasesItsSlot(t *testing.T) {
	w := queued(t, 1, 2)
	w.wantQueue(1, 1, "r0")
	w.ran(0, func(run *v1alpha1.Run) { run.UID = "uid" })
	w.wantQueue(1, 1, "r0")
	run := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: "r0", UID: "another"}}
	run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue})
	w.must(w.runs().Add(run))
	w.wantQueue(1, 1, "r0")
	run = run.DeepCopy()
	run.UID = "uid"
	w.must(w.runs().Update(run))
	w.wantQueue(1, 0, "r1")
}

// A run that was cancelled before its PipelineRun was seen keeps its slot while a create may be
// pending, and while one that was created runs. So does a run whose event was deleted.
func TestPendingCreateKeepsItsSlot(t *testing.T) {
	for name, gone := range map[string]func(w *env){
		"cancelled": func(w *env) {
			w.ran(0, func(run *v1alpha1.Run) { run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled} })
		},
		"its event is deleted": func(w *env) {
			w.events = w.events[1:]
			w.must(w.client.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), systemNS, "e0"))
		},
	} {
		for landed, lands := range map[string]bool{"nothing landed": false, "it has landed": true} {
			t.Run(name+"/"+landed, func(t *testing.T) {
				w := queued(t, 1, 2)
				w.wantQueue(1, 1, "r0")
				gone(w)
				w.wantQueue(1, 1, "r0")
				w.advance(inFlight - time.Second)
				w.wantQueue(1, 1, "r0")
				run := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: "r0", UID: "uid"}}
				if lands {
					w.must(w.tekton.Tracker().Add(run))
				}
				w.advance(time.Minute)
				if lands {
					if after := w.wantQueue(1, 1, "r0"); after != slotsEvery {
						t.Errorf("reconciled again after %v", after)
					}
					run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse})
					w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), run, "one"))
				}
				w.wantQueue(1, 0, "r1")
			})
		}
	}
}

// A redelivery plans the run of a deleted event again under the same name. When that is cancelled,
// too, its create may be pending as long as any other.
func TestReplannedRunKeepsItsSlotAsLong(t *testing.T) {
	w := queued(t, 1, 2)
	w.wantQueue(1, 1, "r0")
	cancelled := func(run *v1alpha1.Run) { run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled} }
	w.ran(0, cancelled)
	w.wantQueue(1, 1, "r0")
	w.ran(0, func(run *v1alpha1.Run) { run.Result = nil })
	w.wantQueue(1, 1, "r0")
	w.advance(inFlight)
	w.ran(0, cancelled)
	w.wantQueue(1, 1, "r0")
	w.advance(inFlight)
	w.wantQueue(1, 0, "r1")
}

// Neither changes the queue of the other one.
func TestTwoInstallationsShareALimit(t *testing.T) {
	w := queued(t, 3, 4)
	changed := w.repository("one", "app")
	changed.Status.SetQueue("other",
		&pacv1alpha1.Queue{Installation: "other", Queued: 5, Slots: []pacv1alpha1.Slot{{Run: "x", Event: "y"}}})
	w.must(w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), changed, "one"))
	w.wantQueue(3, 7, "x", "r0", "r1")
	w.events = nil
	for i := range 4 {
		w.must(w.client.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), systemNS, fmt.Sprint("e", i)))
	}
	w.reconcile("one/app")
	w.advance(inFlight)
	w.wantQueue(1, 5, "x")
}

// A Repository with a limit is reconciled when its runs change, and all are when the global limit
// changes.
func TestRunsWakeALimitedRepository(t *testing.T) {
	before := waiting("a")
	before.Status.Runs = []v1alpha1.Run{{Name: "r"}}
	after := before.DeepCopy()
	ended(&after.Status.Runs[0])
	for limited, want := range map[bool]int{true: 3, false: 0} {
		var q queue
		h := eventHandler(q.add, func(types.NamespacedName) bool { return limited })
		h.OnAdd(before, false)
		h.OnUpdate(before, before.DeepCopy())
		h.OnUpdate(before, after)
		h.OnDelete(after)
		if len(q) != want {
			t.Errorf("limited %t: woken for %v", limited, q)
		}
	}
	limit, resyncs := 2, 0
	global, without := repo(systemNS, "all", ""), repo(systemNS, "all", "")
	global.Spec.ConcurrencyLimit = &limit
	h := watches{global: types.NamespacedName{Namespace: systemNS, Name: "all"}}.globalChanged(func() { resyncs++ })
	h.OnUpdate(global, without)
	h.OnAdd(global, false)
	h.OnDelete(cache.DeletedFinalStateUnknown{Obj: global})
	h.OnUpdate(global, global.DeepCopy())
	h.OnAdd(without, false)
	h.OnAdd(repo("one", "all", appURL), false)
	if resyncs != 3 {
		t.Errorf("all are reconciled %d times, want 3", resyncs)
	}
}

// A run that is cancelled while it waits gets no slot, although its event does not say yet that it
// has ended: it would keep the slot for inFlight.
func TestCancelledRunGetsNoSlot(t *testing.T) {
	w := queued(t, 1, 3)
	w.events[0].Annotations = map[string]string{
		plumbline.CancelAnnotation + "newer": `{"names":["build"],"why":"superseded","at":"2026-01-01T00:00:00Z"}`,
	}
	w.events[0].Status.Runs[0].Pipeline = "build"
	w.wantQueue(1, 1, "r1")
	w.ran(0, func(run *v1alpha1.Run) { run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled} })
	w.wantQueue(1, 1, "r1")
}

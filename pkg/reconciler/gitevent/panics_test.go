// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/planning"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// reconcileTelling is reconcile in a process whose Kubernetes Events are appended to told.
func (w *env) reconcileTelling(told *[]string) error {
	recorder := record.NewFakeRecorder(100)
	r := w.uncounted(w.reconciler)
	r.state.Recorder = recorder
	err := r.Reconcile(context.Background(), system+"/push-1")
	for len(recorder.Events) > 0 {
		if event := <-recorder.Events; !isFact(event) {
			*told = append(*told, event)
		}
	}
	return err
}

// isFact reports whether a Kubernetes Event is about what normally happens.
func isFact(event string) bool {
	_, reason, _ := strings.Cut(event, " ")
	reason, _, _ = strings.Cut(reason, " ")
	return strings.HasPrefix(reason, "Repository") || strings.HasPrefix(reason, "PipelineRun") || reason == "SkipCI"
}

// B16: an event whose planning panics waits after each panic, is parked after attempt.MaxPanics of
// them, warns the Repository once, and leaves no check, no run and no payload.
func TestPanickingEventIsParked(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.fromFork()
	asked := 0
	w.git.canWrite = func(string) (bool, error) { asked++; panic("poison") }
	var told []string
	for n := range int32(attempt.MaxPanics) {
		if err := w.reconcileTelling(&told); err == nil {
			t.Fatalf("panic %d is not requeued", n+1)
		}
		_ = w.reconcileTelling(&told) // too early: a new process, say
		e := w.event()
		if wait := e.Status.Waits; len(wait) != 1 || wait[0].Step != v1alpha1.StepPlan || wait[0].Reason != "Panic" ||
			wait[0].Class != fault.Operator.String() {
			t.Fatalf("after panic %d it waits for %+v", n+1, wait)
		}
		if e.Status.Panics != n+1 || asked != int(n+1) || e.Settled() {
			t.Fatalf("%d panics recorded, %d attempts, want %d of each and an open event", e.Status.Panics, asked, n+1)
		}
		w.clock.SetTime(w.clock.Now().Add(fault.OperatorRetry))
	}
	if len(told) != 0 {
		t.Errorf("before it is parked the Repository is told %q", told)
	}
	for range 3 {
		_ = w.reconcileTelling(&told)
	}
	e := w.event()
	if !e.Settled() || e.Status.Disposition != v1alpha1.DispositionRefused ||
		e.Status.Plan.Reason != planning.ReasonParked || asked != attempt.MaxPanics {
		t.Errorf("%d attempts, status %+v, want it parked after %d", asked, e.Status, attempt.MaxPanics)
	}
	if len(told) != 1 || !strings.Contains(told[0], planning.ReasonParked) || !strings.Contains(told[0], "push-1") {
		t.Errorf("the Repository is told %q, want one Event", told)
	}
	if len(w.git.writes) != 0 || len(w.runs()) != 0 {
		t.Errorf("checks %v and %d runs, want none", w.git.writes, len(w.runs()))
	}
}

// The cause of the panic is fixed before the event is parked: it goes on as usual.
func TestEventThatPanickedOnceGoesOn(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = func(n int, call string) outcome {
		if n == 2 {
			panic("poison")
		}
		return outcome{}
	}
	if _, err := w.reconcile(); err == nil {
		t.Fatal("a panic is not requeued")
	}
	w.hook = nil
	w.clock.SetTime(w.clock.Now().Add(fault.OperatorRetry))
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}

// An event with runs is never parked. It is retried for as long as it takes, its panics stop
// counting, the Repository gets one warning, and in the end its check is true.
func TestPlannedEventIsNotParked(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	var told []string
	_ = w.reconcileTelling(&told)
	w.finishRuns(corev1.ConditionTrue)
	w.hook = func(_ int, call string) outcome {
		if call == "put check completedsuccess" {
			panic("poison")
		}
		return outcome{}
	}
	for range 2 * attempt.MaxPanics {
		if err := w.reconcileTelling(&told); err == nil {
			t.Fatal("a panic is not requeued")
		}
		w.clock.SetTime(w.clock.Now().Add(fault.OperatorRetry))
	}
	e := w.event()
	if e.Settled() || e.Status.Panics != attempt.MaxPanics || len(e.Status.Waits) != 1 ||
		e.Status.Waits[0].Step != v1alpha1.StepReconcile {
		t.Errorf("status %+v, want it open, waiting, with %d panics", e.Status, attempt.MaxPanics)
	}
	if len(told) != 1 || !strings.Contains(told[0], "Panic") {
		t.Errorf("the Repository is told %q, want one Event", told)
	}
	w.hook = nil
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}

// One pipeline waits, and deciding about it panics. The other ones run and are reported as usual,
// and the event is never parked.
func TestPanicOfOnePipelineStopsNoOther(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"), annotated("docs", "on-path-change: 'docs/**'"))
	w.git.changedErr = fault.Transientf("GitUnavailable", "502")
	w.hook = always("create pipelineruns", errRefused)
	_, _ = w.reconcile()
	w.hook = nil
	w.git.poison = true
	for range 3 * attempt.MaxPanics {
		_, _ = w.reconcile()
		w.finishRuns(corev1.ConditionTrue)
		w.clock.SetTime(w.clock.Now().Add(fault.OperatorRetry))
	}
	e := w.event()
	if diff := cmp.Diff(map[string]status.Conclusion{"hello": status.Success}, w.conclusions()); diff != "" ||
		e.Settled() || e.Status.Panics != attempt.MaxPanics {
		t.Fatalf("%d panics, settled %t: %s", e.Status.Panics, e.Settled(), diff)
	}
	w.git.poison, w.git.changedErr, w.git.changed = false, nil, git.Changes{Added: []string{"docs/a.md"}}
	w.settle(corev1.ConditionTrue)
	if diff := cmp.Diff(map[string]status.Conclusion{"hello": status.Success, "docs": status.Success},
		w.conclusions()); diff != "" {
		t.Error(diff)
	}
}

// A panic must not leave a half-done change in the status.
func TestPanicRestoresTheStoredStatus(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	updates := 0
	w.hook = func(_ int, call string) outcome {
		if call == "update gitevents/status" {
			if updates++; updates == 1 { // of the plan: the runs are chosen and not recorded
				panic("poison")
			}
		}
		return outcome{}
	}
	_, _ = w.reconcile()
	if e := w.event(); e.Status.Plan != nil || len(e.Status.Runs) != 0 || e.Status.Panics != 1 {
		t.Errorf("status %+v, want nothing but the panic", e.Status)
	}
}

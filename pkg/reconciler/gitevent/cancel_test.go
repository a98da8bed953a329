// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// cancelled has another event end what the world's event has started: all of it, or some pipelines.
func (w *env) cancelled(names ...string) {
	w.t.Helper()
	name, value, err := (&v1alpha1.Cancellation{By: "rita", Why: "rita asked for it", Names: names, At: metav1.NewTime(w.clock.Now())}).CancelsAs("comment-9")
	w.must(err)
	e := w.event()
	e.Annotations = map[string]string{name: value}
	w.must(w.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), next(e), system)) // the process has not noticed it
}

// obey ends each PipelineRun that was told to end, as Tekton does.
func (w *env) stopCancelledRuns() (told int) {
	for _, run := range w.runs() {
		if run.Spec.Status == "" || run.IsDone() {
			continue
		}
		told++
		run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: "False", Reason: "Cancelled", Message: "was cancelled"})
		w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
	}
	return told
}

// until reconciles until the event is settled, with Tekton ending what it is told to end, and
// everything else if the world says how.
func (w *env) until(settled func() bool) {
	w.t.Helper()
	for range 40 {
		_, _ = w.reconcile()
		w.advance(time.Minute)
		w.uncounted(func() *Reconciler {
			w.stopCancelledRuns()
			if w.ends != "" {
				w.finishRuns(w.ends)
			}
			return nil
		})
		if settled() {
			return
		}
	}
	w.t.Fatalf("not settled: %+v", w.event().Status)
}

func (w *env) settled() bool { return w.event().Settled() }

// A run that is cancelled is told to end once, is "cancelling" until it has, and is then cancelled
// by name.
func TestCancelledRunIsStoppedOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	_, _ = w.reconcile()
	w.cancelled()
	for range 3 {
		_, _ = w.reconcile()
	}
	if got := w.git.checks["1"]; got.State != status.InProgress || got.Title != "Cancelling" || !strings.Contains(got.Text, "rita asked for it") {
		t.Errorf("the check is %s %q: %s", got.State, got.Title, got.Text)
	}
	if n := w.count("patch pipelineruns"); w.runs()[0].Spec.Status != pipelinev1.PipelineRunSpecStatusCancelledRunFinally || n > 3 { // two are of metadata
		t.Errorf("spec.status is %q after %d patches", w.runs()[0].Spec.Status, n)
	}
	w.until(w.settled)
	if got := w.git.checks["1"]; got.Conclusion != status.Cancelled || !strings.Contains(got.Text, "rita asked for it") || got.Words != "rita asked for it" {
		t.Errorf("the check says %q (%s): %s", got.Conclusion, got.Words, got.Text)
	}
	if result := w.event().Status.Runs[0].Result; result.Outcome != v1alpha1.OutcomeCancelled || w.secrets() != 1 {
		t.Errorf("result %+v, %d secrets", result, w.secrets())
	}
}

// D5: whatever refuses to end a run, the check says that it goes on and why, and never that it was
// cancelled; what ended by itself meanwhile keeps its verdict.
func TestRefusedCancelKeepsTheRunsVerdict(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"webhook down": errRefused, "denied": errDenied, "throttled": errThrottled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			_, _ = w.reconcile()
			_, _ = w.reconcile()
			w.cancelled()
			w.hook = always("patch pipelineruns", err)
			for range 4 {
				if _, err := w.reconcile(); err == nil {
					t.Error("a refused patch is not tried again")
				}
				w.advance(time.Minute)
			}
			wait := w.event().Status.Waits
			if len(wait) == 0 || wait[0].Step != v1alpha1.StepCancel+w.runs()[0].Name || wait[0].Class != fault.Transient.String() || wait[0].NotBefore != nil {
				t.Errorf("waits %+v, want one for the workqueue", wait)
			}
			got := w.git.checks["1"]
			if got.State != status.InProgress || got.Title != "Cancelling" || !strings.Contains(got.Text, "goes on, because that has been refused since 00:00 UTC on 1 January") {
				t.Errorf("the check is %s %q: %s", got.State, got.Title, got.Text)
			}
			w.hook = nil
			w.finishRuns(corev1.ConditionTrue)
			w.until(w.settled)
			w.wantSuccess()
		})
	}
}

// What is not planned starts nothing, whatever it waits for; what is planned and not created is not
// created, though the quota is used up for hours. Both end at once.
func TestCancelBeforeCreationStartsNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fails string
		want  string // the check's conclusion, "none" for no check
	}{"not planned": {"get secrets", "none"}, "not created": {"create pipelineruns", "cancelled"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			w.hook = always(test.fails, errRefused)
			_, _ = w.reconcile()
			_, _ = w.reconcile()
			w.hook = nil
			w.edit(func(e *v1alpha1.GitEvent) { // not for an hour
				later := metav1.NewTime(w.clock.Now().Add(time.Hour))
				for i := range e.Status.Waits {
					e.Status.Waits[i].NotBefore = &later
				}
			})
			w.cancelled()
			w.until(w.settled)
			got := "none"
			for _, check := range w.git.checks {
				if got = string(check.Conclusion); !strings.Contains(check.Text, "rita asked for it") {
					t.Errorf("the check says %s", check.Text)
				}
			}
			if got != test.want || len(w.runs()) != 0 || w.secrets() != 1 {
				t.Errorf("conclusion %q, want %s; %d runs, %d secrets", got, test.want, len(w.runs()), w.secrets())
			}
		})
	}
}

// Only the runs that are named end, with or without the dash of a generateName; the others go on.
func TestCancelStopsOnlyNamedRuns(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("first"), helloFile("second"))
	_, _ = w.reconcile()
	w.cancelled("second", "unknown")
	for range 3 {
		_, _ = w.reconcile()
	}
	if told := w.stopCancelledRuns(); told != 1 {
		t.Errorf("%d runs were told to end, want one", told)
	}
	w.settle(corev1.ConditionTrue)
	if got := w.conclusions(); got["first"] != status.Success || got["second"] != status.Cancelled {
		t.Errorf("%v", got)
	}
}

// Whatever call of a cancelled event fails or is the last one of its process, its run ends, once,
// and nothing says otherwise.
func TestCancelSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T) *env {
		w := newEnv(t, helloFile("hello"))
		_, _ = w.reconcile()
		w.cancelled()
		w.calls = nil
		return w
	}, func(t *testing.T, w *env) {
		if e := w.event(); len(w.runs()) != 1 || e.Status.Runs[0].Result.Outcome != v1alpha1.OutcomeCancelled || w.git.checks["1"].Conclusion != status.Cancelled {
			t.Errorf("%d runs, %+v, checks %v", len(w.runs()), e.Status.Runs, w.git.checks)
		}
	})
}

// A create has failed for an hour, and would be tried again after a quarter of one. What is
// cancelled does not wait for that: it may have a slot that others wait for.
func TestCancelDoesNotWaitForTheCreationRetry(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = always("create pipelineruns", errRefused)
	for range 60 {
		_, _ = w.reconcile()
		w.advance(time.Minute)
	}
	for n := w.count("create pipelineruns"); w.count("create pipelineruns") == n; {
		w.advance(time.Minute)
		_, _ = w.reconcile()
	}
	w.cancelled()
	for range 3 {
		_, _ = w.reconcile()
	}
	if run := w.event().Status.Runs[0]; run.Result == nil || run.Result.Outcome != v1alpha1.OutcomeCancelled {
		t.Errorf("the run is not cancelled: %+v", w.event().Status.Waits)
	}
}

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

// cancelled makes another event cancel the env's event: all of it, or some pipelines.
func (w *env) cancelled(names ...string) {
	w.t.Helper()
	name, value, err := (&v1alpha1.Cancellation{
		By: "rita", Why: "rita asked for it", Names: names, At: metav1.NewTime(w.clock.Now()),
	}).CancelsAs("comment-9")
	w.must(err)
	e := w.event()
	e.Annotations = map[string]string{name: value}
	// the process has not noticed it
	w.must(w.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), next(e), system))
}

// stopCancelledRuns finishes each PipelineRun that was told to stop, as Tekton does, and returns
// how many.
func (w *env) stopCancelledRuns() (told int) {
	for _, run := range w.runs() {
		if run.Spec.Status == "" || run.IsDone() {
			continue
		}
		told++
		run.Status.SetCondition(&apis.Condition{
			Type: apis.ConditionSucceeded, Status: "False", Reason: "Cancelled", Message: "was cancelled",
		})
		w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
	}
	return told
}

// until reconciles until the event is settled. Tekton stops what it is told to stop, and finishes
// all other runs if the env says how.
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

// A cancelled run is told to stop once, its check says "Cancelling" until it has stopped, and then
// that it was cancelled by whom.
func TestCancelledRunIsStoppedOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	_, _ = w.reconcile()
	w.cancelled()
	for range 3 {
		_, _ = w.reconcile()
	}
	if got := w.git.checks["1"]; got.State != status.InProgress || got.Title != "Cancelling" ||
		!strings.Contains(got.Text, "rita asked for it") {
		t.Errorf("the check is %s %q: %s", got.State, got.Title, got.Text)
	}
	n := w.count("patch pipelineruns")
	if n > 3 || w.runs()[0].Spec.Status != pipelinev1.PipelineRunSpecStatusCancelledRunFinally { // two are of metadata
		t.Errorf("spec.status is %q after %d patches", w.runs()[0].Spec.Status, n)
	}
	w.until(w.settled)
	if got := w.git.checks["1"]; got.Conclusion != status.Cancelled || !strings.Contains(got.Text, "rita asked for it") ||
		got.Words != "rita asked for it" {
		t.Errorf("the check says %q (%s): %s", got.Conclusion, got.Words, got.Text)
	}
	if result := w.event().Status.Runs[0].Result; result.Outcome != v1alpha1.OutcomeCancelled || w.secrets() != 1 {
		t.Errorf("result %+v, %d secrets", result, w.secrets())
	}
}

// D5: while a cancel is refused, the check says that the run goes on and why, and never that it was
// cancelled. A run that finishes by itself meanwhile keeps its verdict.
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
			if len(wait) == 0 || wait[0].Step != v1alpha1.StepCancel+w.runs()[0].Name ||
				wait[0].Class != fault.Transient.String() || wait[0].NotBefore != nil {
				t.Errorf("waits %+v, want one for the workqueue", wait)
			}
			got := w.git.checks["1"]
			if got.State != status.InProgress || got.Title != "Cancelling" ||
				!strings.Contains(got.Text, "The cluster has refused this since 00:00 UTC on 1 January") {
				t.Errorf("the check is %s %q: %s", got.State, got.Title, got.Text)
			}
			w.hook = nil
			w.finishRuns(corev1.ConditionTrue)
			w.until(w.settled)
			w.wantSuccess()
		})
	}
}

// An unplanned event starts nothing, whatever it waits for. A planned run that is not created is
// not created, even if a quota is exhausted for hours. Both settle at once.
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

// Only named runs are stopped, with or without the dash of a generateName; the others go on.
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

// Whatever call of a cancelled event fails or is the last one of its process, its run is stopped,
// once, and no report contradicts that.
func TestCancelSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T) *env {
		w := newEnv(t, helloFile("hello"))
		_, _ = w.reconcile()
		w.cancelled()
		w.calls = nil
		return w
	}, func(t *testing.T, w *env) {
		if e := w.event(); len(w.runs()) != 1 || e.Status.Runs[0].Result.Outcome != v1alpha1.OutcomeCancelled ||
			w.git.checks["1"].Conclusion != status.Cancelled {
			t.Errorf("%d runs, %+v, checks %v", len(w.runs()), e.Status.Runs, w.git.checks)
		}
	})
}

// A creation has failed for an hour and would be retried after a quarter of an hour. A cancelled
// run does not wait for that: it may occupy a slot that others wait for.
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

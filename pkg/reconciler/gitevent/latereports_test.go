// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/report"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// landLate reconciles until the event is settled, and lets a report of the run's start take effect
// after its conclusion is accepted.
func (w *env) landLate(late *status.Check, reconcile func()) {
	w.t.Helper()
	for range 10 {
		reconcile()
		for id, shown := range w.git.checks {
			if late != nil && shown.Conclusion != "" {
				w.git.checks[id], late = *late, nil
			}
		}
		if w.event().Settled() {
			break
		}
		w.clock.SetTime(w.clock.Now().Add(report.LateReports))
	}
	if !w.event().Settled() || late != nil {
		w.t.Fatalf("not settled, or nothing landed: %+v", w.event().Status)
	}
	for _, shown := range w.git.checks {
		if shown.Conclusion != status.Success {
			w.t.Errorf("the service shows %q for ever: %+v", shown.Title, w.event().Status)
		}
	}
}

// E6: where a late report of any kind shows, the check is looked up once more before the event is
// settled.
func TestLateReportOfTheStartIsFixed(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (*env, *status.Check) {
		w := newEnv(t, helloFile("hello"))
		w.git.reopens = true
		w.hook = func(_ int, call string) outcome {
			if call == "create pipelineruns" {
				return outcome{err: errRefused}
			}
			return outcome{}
		}
		_, _ = w.reconcile() // waits for the cluster, and says so
		if e := w.event(); len(e.Status.Checks) != 1 || e.Status.Checks[0].ID == "" {
			t.Fatalf("%+v, want a check that is shown", e.Status)
		}
		return w, &status.Check{Name: w.git.writes[0].Name, ExternalID: w.git.writes[0].ExternalID, State: status.InProgress,
			Title: "CI has Started"}
	}
	t.Run("its answer was lost", func(t *testing.T) {
		t.Parallel()
		w, late := start(t)
		w.hook = func(_ int, call string) outcome {
			if call == "put check in_progress" {
				f := fault.Transientf("Timeout", "no answer in time")
				f.Unknown = true
				return outcome{err: f}
			}
			return outcome{}
		}
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		r := w.reconciler()
		same := func() { _ = r.Reconcile(t.Context(), system+"/push-1") }
		same()
		w.hook = nil
		w.finishRuns(corev1.ConditionTrue)
		w.landLate(late, same)
	})
	t.Run("the process that sent it was replaced", func(t *testing.T) {
		t.Parallel()
		w, late := start(t)
		w.hook = func(_ int, call string) outcome { return outcome{kill: call == "put check in_progress"} }
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		if killed, _ := w.reconcile(); !killed {
			t.Fatal("it was not killed")
		}
		w.hook = nil
		w.finishRuns(corev1.ConditionTrue)
		w.landLate(late, func() { _, _ = w.reconcile() })
	})
}

// "Pending approval" is the last report of a pull request. Where a late report shows, it is looked
// up once more, too, if the process that was about to send it was replaced.
func TestLateReportOfPendingApprovalIsFixed(t *testing.T) {
	t.Parallel()
	for _, reopens := range []bool{true, false} {
		w := newEnv(t)
		w.git.reopens = reopens
		w.git.canWrite = func(string) (bool, error) { return false, nil }
		w.fromFork()
		w.hook = only("put check queued", outcome{kill: true})
		for range 3 {
			if killed, _ := w.reconcile(); killed {
				break
			}
		}
		w.hook, w.git.soles = nil, nil
		for range 2 { // the process that takes over
			_, _ = w.reconcile()
		}
		if e := w.event(); e.Settled() == reopens || len(w.git.soles) != 1 ||
			e.Status.Disposition != v1alpha1.DispositionPending {
			t.Fatalf("reopens %t: %d reports, status %+v", reopens, len(w.git.soles), e.Status)
		}
		w.advance(report.LateReports)
		_, _ = w.reconcile()
		want := map[bool]int{true: 2, false: 1}[reopens]
		if !w.event().Settled() || len(w.git.soles) != want || w.git.soles[want-1] || len(w.git.checks) != 1 {
			t.Errorf("reopens %t: reports whose duplicates are looked for %v, %d checks, status %+v", reopens, w.git.soles,
				len(w.git.checks), w.event().Status)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// slots gives the Repository a limit of one run, and slots.
func (w *env) slots(given ...pacv1alpha1.Slot) {
	limit := 1
	w.repository = func(r *pacv1alpha1.Repository) {
		r.Spec.ConcurrencyLimit = &limit
		r.Status.SetQueue(system, &pacv1alpha1.Queue{Installation: system, Slots: given})
	}
}

// planned returns an env with a run that waits for a slot.
func planned(t *testing.T) (*env, pacv1alpha1.Slot) {
	t.Helper()
	w := newEnv(t, helloFile("hello"))
	w.slots(pacv1alpha1.Slot{Run: "other-run", Event: "push-0"})
	for range 2 {
		_, _ = w.reconcile()
	}
	return w, pacv1alpha1.Slot{Run: w.event().Status.Runs[0].Name, Event: "push-1"}
}

// A run without a slot is not created. Its check shows its position and which runs have the slots;
// that is written once, however often the event is reconciled. With a slot it runs, although a
// newer commit exists: it has waited for nothing else.
func TestRunWaitsForItsSlot(t *testing.T) {
	t.Parallel()
	w, slot := planned(t)
	w.git.newer = newerSHA
	before, written := w.count("update gitevents/status"), len(w.git.writes)
	w.slots(pacv1alpha1.Slot{Run: "a-third-run", Event: "push-2"})
	for range 5 {
		_, err := w.reconcile()
		if after, known := backoff.KnownWait(err); !known || after > 5*time.Minute {
			t.Errorf("it comes back after %v: %v", after, err)
		}
		w.advance(time.Hour)
	}
	got := w.git.checks["1"]
	if got.State != status.Queued || got.Title != "Queued since 00:00 UTC on 1 January: position 1" ||
		!strings.Contains(got.Text, "other-run") || !strings.Contains(got.Text, "team/app runs at most 1 PipelineRun") {
		t.Errorf("the check is %s %q: %s", got.State, got.Title, got.Text)
	}
	if n := w.count("update gitevents/status") - before; n > 0 || len(w.git.writes) != written || len(w.runs()) > 0 ||
		w.secrets() != 1 {
		t.Errorf("%d writes of the status, %d of the check, %d runs, %d secrets while it waits", n, len(w.git.writes)-written,
			len(w.runs()), w.secrets())
	}
	w.slots(slot)
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
	if order := w.runs()[0].Annotations[pipelinesascode.ExecutionOrder]; order != tenant+"/"+slot.Run {
		t.Errorf("the order is %q", order)
	}
}

// A mistake of the author is reported before the run waits. Other errors of the dry run are not,
// and it is made once.
func TestRefusedRunNeedsNoSlot(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want status.Conclusion
	}{
		"denied": {errDenied, status.Failure}, "webhook down": {errRefused, ""}, "throttled": {errThrottled, ""},
		"it is there": {errDenied, ""},
		// K38
		"a webhook that knows no dry run": {apierrors.NewBadRequest(`admission webhook "x" does not support dry run`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			w.slots(pacv1alpha1.Slot{Run: "other-run", Event: "push-0"})
			w.hook = always("create pipelineruns", test.err)
			if name == "it is there" {
				w.asked = func(action clienttesting.Action) error {
					if action.Matches("get", "pipelineruns") {
						return errThrottled
					}
					return nil
				}
			}
			for range 4 {
				_, _ = w.reconcile()
			}
			if got := w.git.checks["1"].Conclusion; got != test.want || len(w.runs()) > 0 ||
				w.count("create pipelineruns") != 1 {
				t.Errorf("the check says %q, want %q; %d runs, %d creates", got, test.want, len(w.runs()),
					w.count("create pipelineruns"))
			}
		})
	}
}

// A slot of another event, or one that another installation assigned, does not count.
func TestSlotOfAnotherRunDoesNotCount(t *testing.T) {
	t.Parallel()
	w, slot := planned(t)
	other := slot
	other.Event = "push-2"
	w.slots(other)
	_, _ = w.reconcile()
	limit := 1
	w.repository = func(r *pacv1alpha1.Repository) {
		r.Spec.ConcurrencyLimit = &limit
		r.Status.SetQueue("elsewhere", &pacv1alpha1.Queue{Installation: "elsewhere", Slots: []pacv1alpha1.Slot{slot}})
	}
	_, _ = w.reconcile()
	if n := len(w.runs()); n > 0 {
		t.Errorf("%d runs are created with another's slot", n)
	}
	w.repository = nil // the limit is removed
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}

// F11: a queued run is cancelled at once, and nothing of it is created.
func TestQueuedRunIsCancelled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cancel func(*env)
		says   string
	}{
		"somebody asks for it": {func(w *env) { w.cancelled() }, "rita asked for it"},
		"its Repository is deleted": {func(w *env) {
			// so that it is read live
			w.repository = func(r *pacv1alpha1.Repository) { r.Spec.URL = "https://git.example/acme/renamed" }
			w.must(w.own.PipelinesascodeV1alpha1().Repositories(tenant).Delete(t.Context(), "app", metav1.DeleteOptions{}))
		}, "Repository team/app is gone`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := planned(t)
			test.cancel(w)
			w.until(w.settled)
			if got := w.git.checks["1"]; got.Conclusion != status.Cancelled || !strings.Contains(got.Text, test.says) ||
				len(w.runs()) > 0 {
				t.Errorf("the check is %s: %s; %d runs", got.Conclusion, got.Text, len(w.runs()))
			}
		})
	}
}

// Whatever call fails on the way, a run that gets its slot is created once and reported.
func TestQueuedRunSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T) *env {
		w, slot := planned(t)
		w.slots(slot)
		w.calls, w.ends = nil, corev1.ConditionTrue
		return w
	}, func(t *testing.T, w *env) {
		if e := w.event(); len(e.Status.Runs) != 1 || len(w.runs()) > 1 {
			t.Errorf("%d runs, %+v", len(w.runs()), e.Status.Runs)
		}
	})
}

// Queued events are woken when slots or limits change, not by other changes of their Repository.
func TestSlotChangesWakeQueuedEvents(t *testing.T) {
	t.Parallel()
	w, slot := planned(t)
	changed := func(change func(*pacv1alpha1.Repository)) *pacv1alpha1.Repository {
		r := repository()
		change(r)
		return r
	}
	limit := 3
	for name, test := range map[string]struct {
		change func(*pacv1alpha1.Repository)
		woken  int
	}{
		"a slot is given": {func(r *pacv1alpha1.Repository) {
			r.Status.SetQueue(system, &pacv1alpha1.Queue{Installation: system, Slots: []pacv1alpha1.Slot{slot}})
		}, 1},
		"the limit changes":      {func(r *pacv1alpha1.Repository) { r.Spec.ConcurrencyLimit = &limit }, 1},
		"something else changes": {func(r *pacv1alpha1.Repository) { r.Status.ObservedGeneration = 7 }, 0},
		"another one has its slots": {
			func(r *pacv1alpha1.Repository) { r.Name, r.Spec.ConcurrencyLimit = "other", &limit }, 0,
		},
		"its Repository is deleted": {nil, 1},
		"the global limit changes": {func(r *pacv1alpha1.Repository) {
			r.Namespace, r.Name, r.Spec.ConcurrencyLimit = system, "pipelines-as-code", &limit
		}, 1},
	} {
		woken := 0
		r := w.process()
		w.woken = func(string, time.Duration) { woken++ }
		if test.change == nil {
			r.OnRepository().OnDelete(cache.DeletedFinalStateUnknown{Obj: repository()})
		} else {
			r.repositoryChanged(repository(), changed(test.change))
		}
		if woken != test.woken {
			t.Errorf("%s: %d are woken, want %d", name, woken, test.woken)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

// deleteRuns deletes all PipelineRuns, like a user with kubectl.
func (w *env) deleteRuns() {
	w.t.Helper()
	for _, run := range w.runs() {
		w.must(w.tekton.Tracker().Delete(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), tenant, run.Name))
	}
}

// only returns a hook that gives an outcome to calls of one name.
func only(call string, o outcome) func(int, string) outcome {
	return func(_ int, name string) outcome {
		if name == call {
			return o
		}
		return outcome{}
	}
}

// I-2: a run that is deleted before its UID could be recorded is not created again by the process
// that created it, whatever kept it from recording it.
func TestRunDeletedBeforeItsRecordIsNotRecreated(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]outcome{"conflicts": {err: errConflict}, "fails": {err: errRefused}} {
		t.Run("the status write "+name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"), helloFile("world"))
			_, _ = w.reconcileUntilPlanned()
			r := w.uncounted(w.reconciler)
			w.hook = only("update gitevents/status", o)
			_ = r.Reconcile(t.Context(), system+"/push-1")
			if len(w.runs()) != 2 || w.event().Status.Runs[0].UID != "" {
				t.Fatalf("%d runs, status %+v: want two that are not recorded", len(w.runs()), w.event().Status.Runs)
			}
			w.deleteRuns()
			w.hook = nil
			for range 3 {
				_ = r.Reconcile(t.Context(), system+"/push-1")
				w.advance(6 * time.Minute)
			}
			if created := w.count("create pipelineruns"); created != 2 || len(w.runs()) != 0 {
				t.Errorf("%d creates, %d runs are there, want the first two creates alone", created, len(w.runs()))
			}
			for _, pipeline := range []string{"hello", "world"} {
				if got := w.conclusions()[pipeline]; got != status.Cancelled {
					t.Errorf("the check of %s says %q, want cancelled", pipeline, got)
				}
			}
		})
	}
}

// reconcileUntilPlanned ends the process before anything is created.
func (w *env) reconcileUntilPlanned() (bool, error) {
	w.hook = func(_ int, call string) outcome {
		return outcome{kill: call == "create secrets" || call == "create pipelineruns"}
	}
	defer func() { w.hook, w.calls = nil, nil }()
	return w.reconcile()
}

// noQueue enqueues nothing.
type noQueue struct{}

func (noQueue) Enqueue(any) {}

// The process that created the run crashes before it could record that, and the run is deleted.
// Another replica has seen both.
func TestDeletionSeenByAnotherReplicaCounts(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	seen := newCaches()
	other := w.uncounted(func() *Reconciler { w.fill(seen); return w.reconcilerWith(seen) })
	w.hook = only("create pipelineruns", outcome{kill: true, apply: true})
	_, _ = w.reconcile()
	w.hook = nil
	run := w.runs()[0]
	w.deleteRuns()
	w.must(seen.events.Replace([]any{gitevents.Trim(w.event())}, "")) // the plan was recorded before the run was made
	other.RunWatch().OnRun(noQueue{}).OnDelete(cache.DeletedFinalStateUnknown{Key: tenant + "/" + run.Name, Obj: &run})
	for range 3 {
		_ = other.Reconcile(t.Context(), system+"/push-1")
		w.advance(6 * time.Minute)
	}
	if got := w.count("create pipelineruns"); got != 1 || w.conclusions()["hello"] != status.Cancelled {
		t.Errorf("%d creates, checks %v, want one and a cancelled check", got, w.git.checks)
	}
}

// Many runs are recorded while they are created, not after the last of them.
func TestCreatedRunIsRecordedWithinSeconds(t *testing.T) {
	t.Parallel()
	w := newEnv(t, many(40)...)
	w.git.changed = git.Changes{Modified: []string{"go.mod"}}
	w.git.tree = map[string]string{"tasks/build.yaml": taskText("build")}
	recorded := func() int {
		n := 0
		for _, run := range w.event().Status.Runs {
			if run.UID != "" {
				n++
			}
		}
		return n
	}
	const each = 300 * time.Millisecond
	worst := 0
	w.hook = func(_ int, call string) outcome {
		if call == "create pipelineruns" {
			worst = max(worst, len(w.runs())-recorded())
			w.clock.SetTime(w.clock.Now().Add(each))
		}
		return outcome{}
	}
	_, _ = w.reconcile()
	if n := len(w.runs()); n != 40 || recorded() != n {
		t.Fatalf("%d runs, %d recorded, want 40 of each", n, recorded())
	}
	if most := int(attempt.MaxUnrecorded/each) + 2; worst > most {
		t.Errorf("%d runs were there that the status did not know, want at most %d", worst, most)
	}
}

// While reports wait, no other step writes the status soon: a created run is recorded before
// anything that takes long.
func TestCreatedRunIsRecordedWhileReportsWait(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"), helloFile("world"))
	creates := 0
	w.hook = func(_ int, call string) outcome {
		if call == "create pipelineruns" {
			creates++
		}
		return outcome{
			err: map[bool]error{true: errRefused}[call == "patch pipelineruns" || call == "create pipelineruns" && creates == 2],
		}
	}
	_, _ = w.reconcile() // the first run is there, and its patches are what takes long
	w.edit(func(e *v1alpha1.GitEvent) {
		e.Status.Waits = append(e.Status.Waits, v1alpha1.Wait{Step: v1alpha1.StepReport, Class: "Throttled",
			Reason: "RateLimited", Message: "later", NotBefore: notBefore(w.clock.Now().Add(time.Hour))})
	})
	w.calls = nil
	_, _ = w.reconcile()
	at := slices.Index(w.calls, "create pipelineruns")
	if at < 0 || len(w.calls) < at+3 || w.calls[at+1] != "update gitevents/status" ||
		!slices.Contains(w.calls[at+2:], "patch pipelineruns") {
		t.Errorf("calls are %v, want the status to be written between the create and the patch", w.calls)
	}
}

// One run costs two status writes until it runs: the intent of its check is written with the plan,
// and the Git service's answer with the record of its creation. The patches come after that,
// because they may hang, and cost no write. Until its event is settled there are 23 calls, some of
// which only the first push of a Repository needs.
func TestCreationCostsNoExtraWrite(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	_, _ = w.reconcile()
	writes := 0
	for _, call := range w.calls {
		if call == "update gitevents/status" {
			writes++
		}
	}
	after := strings.Join(w.calls[slices.Index(w.calls, "create pipelineruns"):], ", ")
	if want := "create pipelineruns, put check in_progress, update gitevents/status, patch secrets, patch pipelineruns"; after != want || writes != 2 {
		t.Errorf("%d writes, calls %s, want 2 and %s", writes, after, want)
	}
	first := len(w.calls)
	w.advanceAndReconcile(time.Hour / 4)
	if due := w.calls[first:]; len(due) > 0 {
		t.Errorf("a reconcile in which nothing is due calls %v", due)
	}
	w.settle(corev1.ConditionTrue)
	if len(w.calls) != 23 {
		t.Errorf("the first push with one pipeline costs %d calls, want 23: %s", len(w.calls), strings.Join(w.calls, ", "))
	}
}

// H6: a process that was paused before a creation reads the event again, and does nothing if
// another process has it.
func TestPausedProcessReadsBeforeItCreates(t *testing.T) {
	t.Parallel()
	pause := func(w *env) func(int, string) outcome {
		return func(_ int, call string) outcome {
			if call == "mint token" || call == "create secrets" {
				w.clock.SetTime(w.clock.Now().Add(2 * attempt.Fence))
			}
			return outcome{}
		}
	}
	t.Run("another process has settled it", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, helloFile("hello"))
		paused := pause(w)
		w.hook = func(n int, call string) outcome {
			if call == "mint token" {
				w.edit(func(e *v1alpha1.GitEvent) { e.Annotations = map[string]string{"by": "another"} })
			}
			return paused(n, call)
		}
		if _, err := w.reconcile(); err == nil || !strings.Contains(err.Error(), "another process has written") ||
			len(w.runs()) != 0 {
			t.Errorf("%v, %d runs: want a conflict and none", err, len(w.runs()))
		}
	})
	t.Run("nobody else has it", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, helloFile("hello"))
		w.hook = pause(w)
		_, _ = w.reconcile()
		if got := fmt.Sprint(len(w.runs()), w.count("create pipelineruns")); got != "1 1" {
			t.Errorf(
				"runs and creates are %s, want one of each: a Git service that answers slowly keeps no run from being created", got)
		}
		w.hook = nil
		w.settle(corev1.ConditionTrue)
		w.wantSuccess()
	})
}

func notBefore(at time.Time) *metav1.Time {
	t := metav1.NewTime(at)
	return &t
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/observe"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

// wakes are the events that are enqueued.
type wakes map[string]bool

func (w wakes) Enqueue(obj any) { w[obj.(*v1alpha1.GitEvent).Name] = true }

// change changes the PipelineRun of the event.
func (w *world) change(change func(*pipelinev1.PipelineRun)) {
	w.t.Helper()
	w.quietly(func() *Reconciler {
		run := w.runs()[0]
		change(&run)
		w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
		return nil
	})
}

// Somebody gives a run that goes on the label of one that is done and reported: it leaves the
// watch. It was not deleted, and it is looked at again until it is over.
func TestALabelSetByHandHidesNoRun(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.change(func(run *pipelinev1.PipelineRun) {
		run.Labels[pipelinesascode.State] = pipelinesascode.StateCompleted
	})
	for range 3 {
		if _, err := w.reconcile(); err != nil || !slices.Contains(w.wakes, observe.UnwatchedLook) {
			t.Fatalf("error %v, woken after %v: want none, and a look after %v", err, w.wakes, observe.UnwatchedLook)
		}
		if result := w.event().Status.Runs[0].Result; result != nil || w.git.checks["1"].State != status.InProgress {
			t.Fatalf("the run goes on, but its result is %+v and its check %+v", result, w.git.checks["1"])
		}
	}
	w.end(corev1.ConditionTrue)
	_, _ = w.reconcile()
	if !w.event().Settled() || slices.Contains(w.wakes, observe.UnwatchedLook) {
		t.Errorf("waits %+v, woken after %v: want a settled event and no further look", w.event().Status.Waits, w.wakes)
	}
	w.wantSuccess()
}

// Somebody takes the event's name from a run, or writes another one: the watch wakes another event
// when it ends, or none.
func TestARunThatNamesAnotherEventIsLookedAt(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "push-2"} {
		w := running(t)
		before := w.runs()[0]
		w.change(func(run *pipelinev1.PipelineRun) { run.Labels[plumbline.EventLabel] = name })
		after, woken := w.runs()[0], wakes{}
		w.process().RunWatch().OnRun(woken).OnUpdate(pipelineruns.TrimRun(&before), pipelineruns.TrimRun(&after))
		if !woken["push-1"] {
			t.Errorf("named %q: the change wakes nobody", name)
		}
		if _, err := w.reconcile(); err != nil || !slices.Contains(w.wakes, observe.UnwatchedLook) {
			t.Fatalf("named %q: error %v, woken after %v: want none, and a look after %v", name, err, w.wakes, observe.UnwatchedLook)
		}
		w.end(corev1.ConditionTrue)
		_, _ = w.reconcile()
		w.wantSuccess()
	}
}

// A run that the cache has is not looked at: its watch tells.
func TestAWatchedRunIsNotLookedAt(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.calls = nil
	if _, err := w.reconcile(); err != nil || slices.Contains(w.wakes, observe.UnwatchedLook) || slices.Contains(w.calls, "get pipelineruns") {
		t.Errorf("error %v, woken after %v, calls %v", err, w.wakes, w.calls)
	}
}

// The cache keeps few tasks of a run, and those only of one that has ended; the report has all of
// them, and the run is read only for those that the cache does not have.
func TestTheReportNamesTasksThatTheCacheDoesNotKeep(t *testing.T) {
	t.Parallel()
	for skipped, reads := range map[int]bool{2: false, 50: true} {
		w := running(t)
		w.change(func(run *pipelinev1.PipelineRun) {
			for n := range skipped {
				run.Status.SkippedTasks = append(run.Status.SkippedTasks, pipelinev1.SkippedTask{Name: fmt.Sprint("deploy-", n), Reason: "When Expressions evaluated to false"})
			}
		})
		w.end(corev1.ConditionTrue)
		w.calls = nil
		_, _ = w.reconcile()
		if text := w.git.checks["1"].Text; !strings.Contains(text, "deploy-0") || !strings.Contains(text, fmt.Sprint("deploy-", skipped-1)) {
			t.Errorf("the report does not name the skipped tasks:\n%s", text)
		}
		if slices.Contains(w.calls, "get pipelineruns") != reads {
			t.Errorf("%d tasks: calls %v", skipped, w.calls)
		}
		w.wantSuccess()
	}
}

// A run that ended and is pruned before it is read has ended as the cache says, and was not deleted
// while it ran.
func TestARunThatIsPrunedAsSoonAsItEndsKeepsItsResult(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.change(func(run *pipelinev1.PipelineRun) { run.Status.SkippedTasks = make([]pipelinev1.SkippedTask, 50) })
	w.end(corev1.ConditionTrue)
	w.hook = always("get pipelineruns", apierrors.NewNotFound(schema.GroupResource{Group: "tekton.dev", Resource: "pipelineruns"}, "hello"))
	_, _ = w.reconcile()
	w.wantSuccess()
}

// A verdict does not wait for ever for TaskRuns that cannot be listed, but for those that can be a
// moment later.
func TestAVerdictGoesOutWithoutItsTable(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]time.Duration{"for ever": 10 * time.Minute, "for a moment": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := running(t)
			ended := metav1.NewTime(w.clock.Now().Add(-time.Hour)) // nobody has looked since
			w.change(func(run *pipelinev1.PipelineRun) { run.Status.CompletionTime = &ended })
			w.end(corev1.ConditionTrue)
			w.hook = always("list taskruns", apierrors.NewInternalError(errors.New("conversion failed")))
			for _, wait := range []time.Duration{0, waits} {
				w.pass(wait)
				if got := w.git.checks["1"].Conclusion; got != "" {
					t.Fatalf("the check says %q at once, without the tasks", got)
				}
				_, _ = w.reconcile()
			}
			if over := w.git.checks["1"].Conclusion != ""; over != (waits == 10*time.Minute) {
				t.Fatalf("after %v it is reported: %v", waits, over)
			}
			w.hook = nil
			w.settle(corev1.ConditionTrue)
			w.wantSuccess()
		})
	}
}

// So has one that is pruned while its event is busy: the watch has told how it had ended.
func TestARunThatIsPrunedWhileItsEventIsBusyKeepsItsResult(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"it had ended": true, "it had not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := running(t)
			if ends {
				w.end(corev1.ConditionTrue)
			}
			last := w.runs()[0]
			w.must(w.tekton.Tracker().Delete(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), last.Namespace, last.Name))
			r := w.quietly(w.reconciler)
			r.RunWatch().OnRun(wakes{}).OnDelete(pipelineruns.TrimRun(&last))
			_ = r.Reconcile(t.Context(), system+"/push-1")
			if got, want := w.git.checks["1"].Conclusion, map[bool]status.Conclusion{true: status.Success, false: status.Cancelled}[ends]; got != want {
				t.Errorf("the check says %q, want %q", got, want)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"slices"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"

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
func (w *env) change(change func(*pipelinev1.PipelineRun)) {
	w.t.Helper()
	w.uncounted(func() *Reconciler {
		run := w.runs()[0]
		change(&run)
		w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
		return nil
	})
}

// Somebody removes the event's name from a run, or writes another one. When it finishes, the watch
// wakes another event, or none.
func TestRunThatNamesAnotherEventIsPolled(t *testing.T) {
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
		if _, err := w.reconcile(); err != nil || !slices.Contains(w.wakes, observe.UnwatchedPoll) {
			t.Fatalf("named %q: error %v, woken after %v: want none, and a look after %v", name, err, w.wakes,
				observe.UnwatchedPoll)
		}
		w.finishRuns(corev1.ConditionTrue)
		_, _ = w.reconcile()
		w.wantSuccess()
	}
}

// A run that is pruned while its event is busy keeps its result: the watch has reported how it
// finished.
func TestRunPrunedWhileItsEventIsBusyKeepsItsResult(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"it had ended": true, "it had not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := running(t)
			if ends {
				w.finishRuns(corev1.ConditionTrue)
			}
			last := w.runs()[0]
			w.must(w.tekton.Tracker().Delete(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), last.Namespace,
				last.Name))
			r := w.uncounted(w.reconciler)
			r.RunWatch().OnRun(wakes{}).OnDelete(pipelineruns.TrimRun(&last))
			_ = r.Reconcile(t.Context(), system+"/push-1")
			if got, want := w.git.checks["1"].Conclusion,
				map[bool]status.Conclusion{true: status.Success, false: status.Cancelled}[ends]; got != want {
				t.Errorf("the check says %q, want %q", got, want)
			}
		})
	}
}

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
	"k8s.io/apimachinery/pkg/runtime"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// The verdicts of Diagnose that a test can cause with one TaskRun.
const (
	evicted  = pipelinev1.TaskRunReasonPodEvicted
	exitedBy = pipelinev1.TaskRunReasonStepFailed
	unclear  = pipelinev1.TaskRunReason("SomethingElse")
)

// fails ends the PipelineRuns that run: the n-th attempt fails with the n-th reason of its TaskRun,
// and each attempt after those succeeds.
func (w *env) fails(reasons ...pipelinev1.TaskRunReason) {
	w.uncounted(func() *Reconciler {
		for _, run := range w.runs() {
			if run.IsDone() {
				continue
			}
			var n int
			_, err := fmt.Sscan(run.Labels[plumbline.AttemptLabel], &n)
			w.must(err)
			if n > len(reasons) {
				w.end(run, corev1.ConditionTrue, "Succeeded")
				continue
			}
			w.taskRun(&run, reasons[n-1])
			w.end(run, corev1.ConditionFalse, "Failed")
		}
		return nil
	})
}

func (w *env) end(run pipelinev1.PipelineRun, succeeded corev1.ConditionStatus, reason string) {
	w.t.Helper()
	run.Status.SetCondition(
		&apis.Condition{Type: apis.ConditionSucceeded, Status: succeeded, Reason: reason, Message: "x"},
	)
	run.Status.CompletionTime = &metav1.Time{Time: w.clock.Now()}
	w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
}

// taskRun adds the failed TaskRun of a run.
func (w *env) taskRun(run *pipelinev1.PipelineRun, reason pipelinev1.TaskRunReason) {
	w.t.Helper()
	task := &pipelinev1.TaskRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: run.Namespace, Name: run.Name + "-unit",
		Labels: map[string]string{"tekton.dev/pipelineRun": run.Name, "tekton.dev/pipelineTask": "unit"},
	}}
	task.Status.SetCondition(&apis.Condition{
		Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse, Reason: string(reason), Message: "x",
	})
	task.Status.CompletionTime = &metav1.Time{Time: w.clock.Now()}
	if reason == exitedBy {
		task.Status.Steps = []pipelinev1.StepState{{Name: "test", ContainerState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"},
		}}}
	}
	run.Status.ChildReferences = []pipelinev1.ChildStatusReference{{
		TypeMeta: runtime.TypeMeta{Kind: "TaskRun"}, Name: task.Name, PipelineTaskName: "unit",
	}}
	w.must(w.tekton.Tracker().Add(task))
}

// settleAttempts reconciles until the event is settled. Its attempts end as with fails.
func (w *env) settleAttempts(reasons ...pipelinev1.TaskRunReason) {
	w.t.Helper()
	for range 60 {
		_, _ = w.reconcile()
		w.advance(6 * time.Minute)
		w.fails(reasons...)
		if w.event().Settled() {
			return
		}
	}
	w.t.Fatalf("not settled after 60 reconciles: %+v", w.event().Status)
}

// attempts returns the attempts that the labels of the PipelineRuns name.
func (w *env) attempts() (all []string) {
	for _, run := range w.runs() {
		all = append(all, run.Labels[plumbline.AttemptLabel])
	}
	slices.Sort(all)
	return all
}

func TestAttemptsByVerdictAndLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		annotation string
		settings   map[string]string
		reasons    []pipelinev1.TaskRunReason
		attempts   int
		want       status.Conclusion
	}{
		"the cluster, once":              {"", nil, []pipelinev1.TaskRunReason{evicted}, 2, status.Success},
		"the cluster, twice":             {"", nil, []pipelinev1.TaskRunReason{evicted, evicted}, 2, status.Failure},
		"the cluster, then the author":   {"2", nil, []pipelinev1.TaskRunReason{evicted, exitedBy}, 2, status.Failure},
		"the cluster, twice of three":    {"3", nil, []pipelinev1.TaskRunReason{evicted, evicted}, 3, status.Success},
		"the author":                     {"3", nil, []pipelinev1.TaskRunReason{exitedBy}, 1, status.Failure},
		"unknown":                        {"3", nil, []pipelinev1.TaskRunReason{unclear}, 1, status.Failure},
		"the author of a deployment":     {"0", nil, []pipelinev1.TaskRunReason{evicted}, 1, status.Failure},
		"the author writes nonsense":     {"four", nil, []pipelinev1.TaskRunReason{evicted}, 2, status.Success},
		"the author requests too many":   {"4", nil, []pipelinev1.TaskRunReason{evicted, evicted}, 2, status.Failure},
		"the operator turns it off":      {"", map[string]string{"infrastructure-retries": "0"}, []pipelinev1.TaskRunReason{evicted}, 1, status.Failure},
		"the author, against operator's": {"1", map[string]string{"infrastructure-retries": "0"}, []pipelinev1.TaskRunReason{evicted}, 2, status.Success},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := helloFile("hello")
			if test.annotation != "" {
				file.Data = []byte(strings.Replace(string(file.Data), "annotations:\n",
					"annotations:\n    plumbline.dev/infrastructure-retries: \""+test.annotation+"\"\n", 1))
			}
			w := newEnv(t, file)
			w.settings = test.settings
			w.settleAttempts(test.reasons...)
			w.wantAttempts(test.attempts, test.want)
			if n := len(w.attempts()); n != test.attempts {
				t.Errorf("attempts %v, want %d", w.attempts(), test.attempts)
			}
		})
	}
}

// wantAttempts checks that there is one PipelineRun for each attempt, and one check that names all
// of them and has the result of the last.
func (w *env) wantAttempts(n int, want status.Conclusion) {
	w.t.Helper()
	var numbers []string
	for i := range n {
		numbers = append(numbers, fmt.Sprint(i+1))
	}
	if got := w.attempts(); !slices.Equal(got, numbers) {
		w.t.Errorf("the PipelineRuns are the attempts %v, want %v", got, numbers)
	}
	if len(w.git.checks) != 1 {
		w.t.Fatalf("%d checks, want one: %+v", len(w.git.checks), w.git.checks)
	}
	check, run := w.git.checks["1"], w.event().Status.Runs[0]
	if check.Conclusion != want || check.ExternalID != run.Key() || run.Attempt() != n {
		w.t.Errorf("the check of %s says %q, want %q; the event has %d attempts: %+v", check.ExternalID, check.Conclusion,
			want, run.Attempt(), run)
	}
	for _, made := range w.runs() {
		if n > 1 && !strings.Contains(check.Text, made.Name) {
			w.t.Errorf("the check does not name %s: %s", made.Name, check.Text)
		}
		if made.Labels[pipelinesascode.State] != pipelinesascode.StateCompleted ||
			!resources.Named(&made.ObjectMeta, system) {
			w.t.Errorf("%s has the labels %v", made.Name, made.Labels)
		}
	}
}

// Whatever call fails, is lost, or is the last before the process dies: there are exactly two
// attempts, and one check with the result of the second.
func TestSecondAttemptSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	free := newEnv(t, helloFile("hello"))
	free.settleAttempts(evicted)
	free.wantAttempts(2, status.Success)
	t.Logf("without a fault there are %d calls: %v", len(free.calls), free.calls)
	for kind, fault := range failures() {
		for k := 1; k <= len(free.calls); k++ {
			for memory, forgets := range map[string]bool{"one process": false, "a process for each reconcile": true} {
				t.Run(fmt.Sprintf("%s/%s/call %d %s", kind, memory, k, free.calls[k-1]), func(t *testing.T) {
					t.Parallel()
					w := newEnv(t, helloFile("hello"))
					w.forgets = forgets
					denied, made := "", 0
					w.hook = func(n int, call string) outcome {
						if call == "create pipelineruns" {
							made++
						}
						if n != k {
							return outcome{}
						}
						if kind == "denied" {
							denied = fmt.Sprint(call, " of attempt ", made)
						}
						return fault
					}
					w.settleAttempts(evicted)
					switch denied {
					case "create pipelineruns of attempt 1", "create pipelineruns of attempt 2": // admission refuses the definition
						if made > 2 || w.conclusions()["hello"] != status.Failure {
							t.Errorf("%d PipelineRuns were created, and the check says %q", made, w.conclusions()["hello"])
						}
					case "list taskruns of attempt 1": // without its TaskRuns the cause of a failure is unknown
						w.wantAttempts(1, status.Failure)
					default:
						w.wantAttempts(2, status.Success)
					}
				})
			}
		}
	}
}

// failedOnce returns an env whose first attempt has failed because of the cluster, and whose event
// has not seen that.
func failedOnce(t *testing.T) *env {
	t.Helper()
	w := newEnv(t, helloFile("hello"))
	_, _ = w.reconcile()
	w.advance(time.Minute)
	w.fails(evicted)
	return w
}

func TestCancelledRunHasNoOtherAttempt(t *testing.T) {
	t.Parallel()
	cancel := func(w *env) {
		event := w.event()
		event.Annotations = map[string]string{plumbline.CancelAnnotation + "comment-1": `{"why":"cancelled by dev"}`}
		w.must(w.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), event, system))
	}
	for name, test := range map[string]struct {
		before, between func(w *env)
		want            status.Conclusion
	}{
		"by a command before the failure is seen": {cancel, nil, status.Failure},
		"by a command before it is created":       {nil, cancel, status.Cancelled},
		"by a user's spec.status": {func(w *env) {
			run := w.runs()[0]
			run.Spec.Status = pipelinev1.PipelineRunSpecStatusCancelled
			w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, tenant))
		}, nil, status.Failure},
		"by a deletion that is under way": {func(w *env) {
			run := w.runs()[0]
			run.DeletionTimestamp, run.Finalizers = &metav1.Time{Time: w.clock.Now()}, []string{"x/y"}
			w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, tenant))
		}, nil, status.Failure},
		"by a deletion": {(*env).deleteRuns, nil, status.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := failedOnce(t)
			if test.before != nil {
				test.before(w)
			}
			if _, _ = w.reconcile(); test.between != nil {
				if run := w.event().Status.Runs[0]; run.Attempt() != 2 || run.UID != "" {
					t.Fatalf("the second attempt is not stored, or exists already: %+v", run)
				}
				test.between(w)
			}
			w.settleAttempts()
			if got := w.conclusions()["hello"]; got != test.want || w.count("create pipelineruns") != 1 {
				t.Errorf("the check says %q, want %q; %d PipelineRuns were created", got, test.want,
					w.count("create pipelineruns"))
			}
		})
	}
}

// A finished run whose deletion the watch has seen before its event did is not started again.
func TestDeletedFinishedRunHasNoOtherAttempt(t *testing.T) {
	t.Parallel()
	w := failedOnce(t)
	run := w.runs()[0]
	w.uncounted(func() *Reconciler {
		w.process().steps.Observe.Deleted.Note(&run)
		return nil
	})
	w.deleteRuns()
	w.settleAttempts()
	if got := w.conclusions()["hello"]; got != status.Failure || w.count("create pipelineruns") != 1 {
		t.Errorf("the check says %q; %d PipelineRuns were created", got, w.count("create pipelineruns"))
	}
}

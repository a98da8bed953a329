// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// C9, D2: whatever call fails, is lost, or is the last before the process dies, there is one run,
// no failed check and a true verdict; with the memory of one process and without. test/e2e repeats
// this with a control plane.
func TestEventSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	free := newEnv(t, helloFile("hello"))
	free.settle(corev1.ConditionTrue)
	total := len(free.calls)
	t.Logf("a fault-free event makes %d calls: %v", total, free.calls)
	for kind, fault := range failures() {
		for k := 1; k <= total; k++ {
			for memory, forgets := range map[string]bool{"one process": false, "a process for each reconcile": true} {
				t.Run(fmt.Sprintf("%s/%s/call %d %s", kind, memory, k, free.calls[k-1]), func(t *testing.T) {
					t.Parallel()
					w := newEnv(t, helloFile("hello"))
					w.forgets = forgets
					w.hook = func(n int, _ string) outcome {
						if n == k {
							return fault
						}
						return outcome{}
					}
					w.settle(corev1.ConditionTrue)
					if kind == "denied" && free.calls[k-1] == "create pipelineruns" {
						w.wantRefused()
						return
					}
					w.wantSuccess()
				})
			}
		}
	}
}

// D1: all patches fail for the run's whole life. The check still ends as the run does.
func TestRefusedPatchesChangeNoVerdict(t *testing.T) {
	t.Parallel()
	for _, outcome := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
		for name, err := range map[string]error{
			"webhook down": errRefused, "denied": errDenied, "conflict": errConflict, "throttled": errThrottled,
			"webhook timeout": apierrors.NewInternalError(errors.New("failed calling webhook: context deadline exceeded")),
			"a right is missing": apierrors.NewForbidden(pipelinev1.Resource("pipelineruns"), "x",
				errors.New(`User "plumbline-controller" cannot patch resource "pipelineruns"`)),
			"etcd":         apierrors.NewInternalError(errors.New("etcdserver: request timed out")),
			"unavailable":  apierrors.NewServiceUnavailable("the server is shutting down"),
			"timeout":      apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0),
			"unauthorized": apierrors.NewUnauthorized("Unauthorized"),
		} {
			t.Run(name+"/run ends "+string(outcome), func(t *testing.T) {
				t.Parallel()
				w := newEnv(t, helloFile("hello"))
				w.hook = always("patch pipelineruns", err)
				for range 12 {
					_, _ = w.reconcile()
					w.finishRuns(outcome)
				}
				want := status.Success
				if outcome == corev1.ConditionFalse {
					want = status.Failure
				}
				if got := w.git.checks["1"].Conclusion; got != want {
					t.Errorf("the check says %q, want %q", got, want)
				}
				if e := w.event(); e.Settled() || !e.Status.GetCondition("Annotated").IsFalse() {
					t.Errorf("an event whose patches are refused must stay open with Annotated=False: %v", e.Status.Conditions)
				}
			})
		}
	}
}

// failures returns the ways in which a call may fail.
func failures() map[string]outcome {
	return map[string]outcome{
		"refused": {err: errRefused}, "denied": {err: errDenied}, "conflict": {err: errConflict},
		"throttled": {err: errThrottled},
		"applied":   {err: errRefused, apply: true}, "killed before": {kill: true}, "killed after": {kill: true, apply: true},
	}
}

// atEveryCall runs an env again for each call that it makes until it is settled, and each way in
// which that call may fail. At the end, all of them must pass the check.
func atEveryCall(t *testing.T, begin func(*testing.T) *env, check func(*testing.T, *env)) {
	t.Helper()
	atEachCall(t, failures(), begin, check)
}

// atEachCall is atEveryCall with some of the failures.
func atEachCall(t *testing.T, failures map[string]outcome, begin func(*testing.T) *env, check func(*testing.T, *env)) {
	t.Helper()
	free := begin(t)
	free.until(free.settled)
	for kind, fault := range failures {
		for k := 1; k <= len(free.calls); k++ {
			t.Run(fmt.Sprintf("%s/call %d %s", kind, k, free.calls[k-1]), func(t *testing.T) {
				t.Parallel()
				w := begin(t)
				w.hook = func(n int, _ string) outcome {
					if n == k {
						return fault
					}
					return outcome{}
				}
				w.until(w.settled)
				check(t, w)
			})
		}
	}
}

func always(call string, err error) func(int, string) outcome {
	return func(_ int, name string) outcome {
		if name == call {
			return outcome{err: err}
		}
		return outcome{}
	}
}

func (w *env) wantSuccess() {
	w.t.Helper()
	runs := w.runs()
	if len(runs) != 1 {
		w.t.Fatalf("%d PipelineRuns, want 1", len(runs))
	}
	if len(w.git.checks) != 1 || w.git.checks["1"].Conclusion != status.Success {
		w.t.Errorf("checks are %v, want one success", w.git.checks)
	}
	for _, check := range w.git.writes {
		if check.Conclusion != "" && check.Conclusion != status.Success {
			w.t.Errorf("a write said %s: %s", check.Conclusion, check.Text)
		}
	}
	if got := runs[0].Annotations[pipelinesascode.State]; got != pipelinesascode.StateCompleted {
		w.t.Errorf("state annotation is %q at the end", got)
	}
	if secrets := w.secrets(); secrets != 1 {
		w.t.Errorf("%d secrets are left, want the App's only", secrets)
	}
}

func (w *env) wantRefused() {
	w.t.Helper()
	if len(w.runs()) != 0 || w.git.checks["1"].Conclusion != status.Failure {
		w.t.Errorf("%d runs, checks %v: want no run and one failure", len(w.runs()), w.git.checks)
	}
}

func (w *env) secrets() int {
	w.t.Helper()
	obj, err := w.kube.Tracker().List(corev1.SchemeGroupVersion.WithResource("secrets"),
		corev1.SchemeGroupVersion.WithKind("Secret"), tenant)
	w.must(err)
	list, ok := obj.(*corev1.SecretList)
	if !ok {
		w.t.Fatalf("unexpected %T", obj)
	}
	app, err := w.kube.Tracker().List(corev1.SchemeGroupVersion.WithResource("secrets"),
		corev1.SchemeGroupVersion.WithKind("Secret"), system)
	w.must(err)
	left := slices.DeleteFunc(slices.Clone(list.Items), func(secret corev1.Secret) bool { return w.leftToRun(&secret) })
	return len(left) + len(app.(*corev1.SecretList).Items)
}

// leftToRun reports whether a secret belongs to an existing PipelineRun.
func (w *env) leftToRun(secret *corev1.Secret) bool {
	return slices.ContainsFunc(w.runs(), func(run pipelinev1.PipelineRun) bool {
		return resources.IsOwnedByRunAlone(secret, &v1alpha1.Run{UID: run.UID})
	})
}

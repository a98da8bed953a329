// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"slices"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
)

// A status write whose answer was lost has succeeded; while patches are denied, the event's timers
// are never reset. When a later write fails once, that is another outage: it is retried at once,
// not after the age of the first failure.
func TestLostAnswerStartsNoLongBackoff(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.settings = map[string]string{"secret-auto-create": "false"} // no renewal writes meanwhile
	patches := func(write outcome) func(int, string) outcome {
		return func(_ int, call string) outcome {
			switch call {
			case "patch pipelineruns":
				return outcome{err: errDenied}
			case "update gitevents/status":
				return write
			}
			return outcome{}
		}
	}
	w.hook = patches(outcome{})
	for range 5 {
		_, _ = w.reconcile()
	}
	w.hook = patches(outcome{err: apierrors.NewTimeoutError("no answer", 1), apply: true})
	// The run is pending in the cluster, so the check's text changes.
	w.change(func(run *pipelinev1.PipelineRun) { run.Spec.Status = pipelinev1.PipelineRunSpecStatusPending })
	_, _ = w.reconcile()
	w.hook = patches(outcome{})
	_, _ = w.reconcile()
	for range 4 {
		w.advanceAndReconcile(30 * time.Minute)
	}
	w.change(func(run *pipelinev1.PipelineRun) {
		run.Spec.Status = ""
		run.Status.StartTime = &metav1.Time{Time: w.clock.Now()}
	})
	w.hook = patches(outcome{err: apierrors.NewServiceUnavailable("once")})
	_, _ = w.reconcile()
	w.hook = patches(outcome{})
	before := w.event().Status.Checks[0].Accepted
	w.advanceAndReconcile(time.Second)
	if w.event().Status.Checks[0].Accepted == before {
		t.Errorf("what the Git service has accepted is not recorded a second after one write failed; asked for %v", w.wakes)
	}
}

// D1: patches are denied for the whole life of a run, and when it finishes one other call fails.
// That is another outage: neither the verdict nor settling waits as long as the patches have
// failed.
func TestOneFailedCallDelaysNoVerdict(t *testing.T) {
	t.Parallel()
	for call, prepare := range map[string]func(*env){
		"get gitevents": func(w *env) { w.process().state.Cache.Clear() }, // after a conflict, or evicted
		"patch secrets": func(*env) {},
	} {
		t.Run(call, func(t *testing.T) {
			w := newEnv(t, helloFile("hello"))
			w.hook = always("patch pipelineruns", errDenied)
			for range 5 {
				_, _ = w.reconcile()
			}
			for range 8 {
				w.advanceAndReconcile(20 * time.Minute)
			}
			w.finishRuns(corev1.ConditionTrue)
			prepare(w)
			w.hook = always(call, apierrors.NewServiceUnavailable("once"))
			_, err := w.reconcile()
			if err == nil || len(w.wakes) != 1 || w.wakes[0] > backoff.MinWait {
				t.Errorf("error %v, woken after %v: want a retry a second later", err, w.wakes)
			}
		})
	}
}

// The timers of this process are from before another process led: they do not count any more.
func TestReturningLeaderRetriesEverythingOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = always("patch pipelineruns", errDenied)
	for range 8 {
		w.advanceAndReconcile(20 * time.Minute)
	}
	w.hook, w.calls = nil, nil
	enqueued := 0
	w.must(w.process().promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) { enqueued++ }))
	_, _ = w.reconcile()
	if enqueued != 1 || !slices.Contains(w.calls, "patch pipelineruns") {
		t.Errorf("%d events are enqueued, calls %v: want the patch tried", enqueued, w.calls)
	}
}

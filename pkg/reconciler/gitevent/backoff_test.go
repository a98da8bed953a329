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

// A status write whose answer was lost has landed, and while patches are denied the event is never
// forgotten. A write that fails once much later is an outage of its own: it is tried again at once,
// not after as long as the first is ago.
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
	// Pending in the cluster: the check has other words.
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

// D1 and a single read that fails: patches are denied for the whole life of a run, and when it ends
// the API server does not answer once. That is an outage of its own, and the verdict does not wait
// as long as the patches have failed.
func TestOneFailedReadDelaysNoVerdict(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = always("patch pipelineruns", errDenied)
	for range 5 {
		_, _ = w.reconcile()
	}
	for range 8 {
		w.advanceAndReconcile(20 * time.Minute)
	}
	w.finishRuns(corev1.ConditionTrue)
	w.process().state.Cache.Clear() // for want of room, or after a conflict
	w.hook = always("get gitevents", apierrors.NewServiceUnavailable("once"))
	_, err := w.reconcile()
	if err == nil || len(w.wakes) != 1 || w.wakes[0] > backoff.MinWait {
		t.Errorf("error %v, woken after %v: want another look a second later", err, w.wakes)
	}
}

// The same for what is tidied up at the end: an event is settled when the service is there again.
func TestOneFailedDeletionDelaysNoSettling(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = always("patch pipelineruns", errDenied)
	for range 5 {
		_, _ = w.reconcile()
	}
	for range 8 {
		w.advanceAndReconcile(20 * time.Minute)
	}
	w.finishRuns(corev1.ConditionTrue)
	w.hook = always("patch secrets", apierrors.NewServiceUnavailable("once"))
	_, err := w.reconcile()
	if err == nil || len(w.wakes) != 1 || w.wakes[0] > backoff.MinWait {
		t.Errorf("error %v, woken after %v: want another look a second later", err, w.wakes)
	}
}

// What this process knows of failures is from before another one led: it says nothing about now.
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

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/fairqueue"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// ended returns an env whose run is finished, and whose report is refused.
func ended(t *testing.T, refusal *fault.Error) *env {
	t.Helper()
	w := received(t)
	w.advanceAndReconcile(time.Second)
	if len(w.runs()) != 1 {
		t.Fatalf("%d runs, want one", len(w.runs()))
	}
	w.hook = func(_ int, call string) outcome {
		if strings.HasPrefix(call, "put check") {
			return outcome{err: refusal}
		}
		return outcome{}
	}
	return w
}

// G8, G10: a result that cannot be reported is given up like an event, never while the run goes on,
// and no sooner than the same time after it finished.
func TestResultThatCannotBeReportedIsGivenUp(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		err  *fault.Error
		want time.Duration
	}{
		"at once when the App was uninstalled": {errUninstalled, fault.OperatorRetry},
		"after the window when the repository may come back": {
			fault.Operatorf("RepositoryNotInstalled", "it is not installed on this repository"), 3 * oneDay,
		},
		"after the window when the commit may be a replica's lag": {errNoCommit, 3 * oneDay},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			w, told := ended(t, c.err), []string{}
			if after := w.reconcileEvery(30*time.Minute, 5*oneDay, &told); after >= 0 {
				t.Fatalf("given up after %v although the run goes on", after)
			}
			run := w.runs()[0]
			now := metav1.NewTime(w.clock.Now())
			run.Status.CompletionTime = &now
			run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue, Reason: "Done"})
			w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
			step := min(5*time.Minute, c.want)
			after := w.reconcileEvery(step, 5*oneDay, &told)
			if after < c.want-step || after > c.want+step {
				t.Errorf("given up after %v, want %v", after, c.want)
			}
			e := w.event()
			if reported := e.Status.GetCondition(v1alpha1.GitEventReported); reported.IsTrue() ||
				reported.Reason != c.err.Reason || e.Status.Disposition != v1alpha1.DispositionRuns {
				t.Errorf("it is %s with Reported %v, want the reason why nothing was reported", e.Status.Disposition, reported)
			}
		})
	}
}

// G8: a run whose token cannot be minted any more is not created, and its event is refused.
func TestRunOfAnUninstalledAppIsNotCreated(t *testing.T) {
	t.Parallel()
	w, told := received(t), []string{}
	w.hook = func(_ int, call string) outcome {
		if call == "mint token" || strings.HasPrefix(call, "put check") {
			return outcome{err: errUninstalled}
		}
		return outcome{}
	}
	if after := w.reconcileEvery(5*time.Minute, time.Hour, &told); after < fault.OperatorRetry ||
		after > 3*fault.OperatorRetry {
		t.Errorf("ended after %v", after)
	}
	if e := w.event(); e.Status.Disposition != v1alpha1.DispositionRefused ||
		e.Status.Plan.Reason != attempt.ReasonGivenUp || len(w.runs()) != 0 {
		t.Errorf("%d runs, the event is %s with %+v, want it refused without a run", len(w.runs()), e.Status.Disposition,
			e.Status.Plan)
	}
}

// A run that cannot be created because of a missing permission in the cluster is not given up: it
// is planned, and needs nothing of the Git service.
func TestRunThatWaitsForAPermissionIsNotGivenUp(t *testing.T) {
	t.Parallel()
	w, told := received(t), []string{}
	w.hook = always("create pipelineruns",
		&apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden,
			Message: `pipelineruns.tekton.dev is forbidden: User "system:serviceaccount:plumbline:controller" cannot create resource "pipelineruns"`}})
	if after := w.reconcileEvery(time.Hour, 8*oneDay, &told); after >= 0 {
		t.Fatalf("ended after %v", after)
	}
	w.hook = nil
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}

// A problem that is fixed in the last minutes counts, although the event had no slot of its Git
// host at once.
func TestEventWithoutASlotIsNotGivenUp(t *testing.T) {
	t.Parallel()
	w, told := received(t), []string{}
	w.git.err = errHidden
	if after := w.reconcileEvery(30*time.Minute, 3*oneDay-time.Hour, &told); after >= 0 {
		t.Fatalf("ended after %v", after)
	}
	w.advanceAndReconcile(25 * time.Minute)
	w.git.err = nil
	w.alive.repositoryChanged(nil, repository())
	release, _ := w.alive.queue.AcquireService(fairqueue.Request{Namespace: "other", Host: "git.example"})
	w.advanceAndReconcile(6 * time.Minute)
	if w.event().Settled() {
		t.Fatal("given up although only the turn was missing")
	}
	release()
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Timelines that could leave a check pending for ever: docs/reliability.md lists them in "Checks
// that stay open". In each of them every reconcile is another process's.

var errDown = fault.Transientf("Unavailable", "the Git service is down")

// opened returns an env with a run that goes on and a check that shows it. Then the Git service
// goes down.
func opened(t *testing.T) *env {
	t.Helper()
	w := newEnv(t, helloFile("hello"))
	w.startRun()
	return w
}

func (w *env) startRun() {
	w.t.Helper()
	for range 3 {
		_, _ = w.reconcile()
	}
	if got, open := w.conclusions()["hello"]; !open || got != "" || len(w.runs()) != 1 {
		w.t.Fatalf("%d runs, checks %v: want one that is in progress", len(w.runs()), w.conclusions())
	}
	w.forgets = true
	w.stopGit()
}

func (w *env) stopGit() { w.git.asked = func(status.Check) error { return errDown } }

func (w *env) restoreGit() { w.git.asked = nil }

// advanceHours lets time pass with a reconcile every ten minutes.
func (w *env) advanceHours(n int) {
	for range 6 * n {
		w.advanceAndReconcile(10 * time.Minute)
	}
}

func (w *env) deleteRun() {
	run := w.runs()[0]
	w.must(w.tekton.Tracker().Delete(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), run.Namespace, run.Name))
}

func (w *env) deleteRepository() {
	// so that it is read live
	w.repository = func(r *pacv1alpha1.Repository) { r.Spec.URL = "https://git.example/acme/renamed" }
	w.must(w.own.PipelinesascodeV1alpha1().Repositories(tenant).Delete(w.t.Context(), "app", metav1.DeleteOptions{}))
}

// wantEnd requires that the check has this conclusion, and that the event is settled.
func (w *env) wantEnd(want status.Conclusion) {
	w.t.Helper()
	for range 20 {
		w.advanceAndReconcile(10 * time.Minute)
	}
	if got := w.conclusions()["hello"]; got != want || !w.event().Settled() {
		w.t.Errorf("the check says %q and the event is %q, want %s and settled", got, w.event().Status.Phase, want)
	}
	for _, write := range w.git.writes {
		if write.Conclusion != "" && write.Conclusion != want {
			w.t.Errorf("a write said %s", write.Conclusion)
		}
	}
}

// E3, with outages at the wrong moment: of the Git service, and of the process at any call.
func TestE3DeletedRunIsCancelledDespiteOutages(t *testing.T) {
	t.Parallel()
	w := opened(t)
	w.deleteRun()
	w.advanceHours(5)
	w.restoreGit()
	w.wantEnd(status.Cancelled)
	if len(w.runs()) != 0 {
		t.Error("it was created again")
	}
	for _, apply := range []bool{false, true} {
		for k := 1; k <= 12; k++ {
			w := opened(t)
			w.restoreGit()
			w.deleteRun()
			made := len(w.calls)
			w.hook = func(n int, _ string) outcome { return outcome{kill: n == made+k, apply: apply && n == made+k} }
			w.wantEnd(status.Cancelled)
			if len(w.runs()) != 0 {
				t.Errorf("killed at call %d: it was created again", k)
			}
		}
	}
}

// E4, with the Git service down while the Repository is deleted: a GitHub App's credentials work
// without it.
func TestE4ResultIsReportedWithoutTheRepository(t *testing.T) {
	t.Parallel()
	w := opened(t)
	w.deleteRepository()
	w.advanceHours(1)
	w.finishRuns(corev1.ConditionTrue)
	w.advanceHours(5)
	w.restoreGit()
	w.wantEnd(status.Success)
}

// The Repository and its PipelineRuns are deleted with their namespace.
func TestE4RunDeletedWithItsRepositoryIsCancelled(t *testing.T) {
	t.Parallel()
	w := opened(t)
	w.deleteRepository()
	w.deleteRun()
	w.advanceHours(5)
	w.restoreGit()
	w.wantEnd(status.Cancelled)
}

// The credentials are gone for hours and come back, also while the run finishes.
func TestRestoredCredentialsReport(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *env) (back func()){
		"the Secret of the Repository": func(w *env) func() {
			token := corev1.SchemeGroupVersion.WithResource("secrets")
			secret, err := w.kube.Tracker().Get(token, tenant, "token")
			w.must(err)
			w.must(w.kube.Tracker().Delete(token, tenant, "token"))
			return func() { w.must(w.kube.Tracker().Add(secret)) }
		},
		"the right of the App": func(w *env) func() {
			w.git.loginErr = fault.Operatorf(fault.ReasonCredentialsRefused, "the key was refused")
			return func() { w.git.loginErr = nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			w.git.own = true
			w.repository = func(r *pacv1alpha1.Repository) {
				r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "token"}}
			}
			w.must(w.kube.Tracker().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "token"},
				Data: map[string][]byte{"provider.token": []byte("t")}}))
			w.edit(func(e *v1alpha1.GitEvent) { e.Spec.ReceivedAt = metav1.NewTime(w.clock.Now()) })
			w.startRun()
			w.restoreGit()
			back := change(w)
			w.advanceHours(1)
			w.finishRuns(corev1.ConditionTrue)
			w.advanceHours(5)
			back()
			w.wantEnd(status.Success)
		})
	}
}

// The answer to the check's creation was lost, and the process crashed; then the run is superseded
// before it is created. The check whose ID was lost is found and concluded.
func TestCheckWithALostAnswerIsConcluded(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]outcome{"killed": {kill: true, apply: true},
		"answered 502": {err: errDown, apply: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			w.forgets = true
			w.hook = func(_ int, call string) outcome {
				switch call {
				case "create pipelineruns":
					return outcome{err: errRefused}
				case "put check queued":
					return lost
				}
				return outcome{}
			}
			for range 3 {
				w.advanceAndReconcile(time.Second)
			}
			if got, open := w.conclusions()["hello"]; !open || got != "" {
				t.Fatalf("checks %v: want one that waits", w.conclusions())
			}
			w.hook = always("create pipelineruns", errRefused)
			w.git.newer = newerSHA
			w.wantEnd(status.Cancelled)
			if len(w.git.checks) != 1 || len(w.runs()) != 0 {
				t.Errorf("%d checks and %d runs, want one check and no run", len(w.git.checks), len(w.runs()))
			}
		})
	}
}

// A GitEvent is deleted by hand, and all that was known of its run. Nothing in this package
// recreates it, and no reconcile does harm. The sweep closes the check of a run that exists
// (pkg/reconciler/sweep/orphans).
func TestDeletedEventIsNotRecreated(t *testing.T) {
	t.Parallel()
	w := opened(t)
	w.restoreGit()
	w.must(w.own.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), system, "push-1"))
	writes := len(w.git.writes)
	w.finishRuns(corev1.ConditionTrue)
	w.advanceHours(1)
	if len(w.git.writes) != writes || len(w.events()) != 0 {
		t.Errorf("writes %v, events %v", w.git.writes[writes:], w.events())
	}
}

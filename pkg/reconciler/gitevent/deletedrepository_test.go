// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/fairqueue"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// orphaned returns an env with a run in progress, whose Repository named the credentials and was
// deleted.
func orphaned(t *testing.T) *env {
	t.Helper()
	w := newEnv(t, helloFile("hello"))
	w.git.own = true
	named := func(r *pacv1alpha1.Repository) {
		r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "token"}}
	}
	w.repository = named
	w.must(w.kube.Tracker().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "token"},
		Data: map[string][]byte{"provider.token": []byte("t")}}))
	for range 3 {
		_, _ = w.reconcile()
	}
	if got := w.conclusions(); len(got) != 1 || len(w.runs()) != 1 {
		t.Fatalf("%d runs, checks %v: want one that is in progress", len(w.runs()), got)
	}
	// so that it is read live
	w.repository = func(r *pacv1alpha1.Repository) { r.Spec.URL = "https://git.example/acme/renamed" }
	w.must(w.own.PipelinesascodeV1alpha1().Repositories(tenant).Delete(t.Context(), "app", metav1.DeleteOptions{}))
	return w
}

// advanceAndReconcile lets time pass, and reconciles.
func (w *env) advanceAndReconcile(d time.Duration) {
	w.advance(d)
	_, _ = w.reconcile()
}

// E4: reports that cannot be sent are given up ten minutes after there was something to report, not
// before, and never while a run goes on.
func TestReportsOfADeletedRepositoryAreGivenUp(t *testing.T) {
	t.Parallel()
	w := orphaned(t)
	w.finishRuns(corev1.ConditionTrue)
	w.advanceAndReconcile(time.Second)
	wait := w.event().Status.Waits
	if len(wait) != 1 || wait[0].Step != v1alpha1.StepReport || wait[0].Reason != credentials.ReasonRepositoryGone {
		t.Fatalf("waits %+v, want the report's for its Repository", wait)
	}
	w.advanceAndReconcile(9 * time.Minute)
	if e := w.event(); e.Settled() {
		t.Fatal("given up after nine minutes")
	}
	w.advanceAndReconcile(2 * time.Minute)
	e := w.event()
	if reported := e.Status.GetCondition(v1alpha1.GitEventReported); !e.Settled() ||
		reported.Reason != credentials.ReasonRepositoryGone || e.Status.Disposition != v1alpha1.DispositionRuns {
		t.Errorf("after eleven minutes the event is %s with %v, want it settled with the reason", e.Status.Phase, reported)
	}
	if left := e.Status.Checks; !e.Status.Unreported || len(left) != 1 || left[0].ID == "" || left[0].Concluded {
		t.Errorf("the sweep is told of %+v", left)
	}
	if want := "Succeeded, not reported: " + credentials.ReasonRepositoryGone; e.Status.Outcome != want {
		t.Errorf("the list says %q, want %q", e.Status.Outcome, want)
	}
	if got := w.conclusions()["hello"]; got != "" {
		t.Errorf("the check says %s, which could not be reported", got)
	}
}

func TestRunOutlivesItsRepository(t *testing.T) {
	t.Parallel()
	w := orphaned(t)
	e := w.event()
	e.Status.Checks = nil // as if its start could not be reported either
	w.replaceEvent(e)
	for range 5 {
		w.advanceAndReconcile(5 * time.Minute)
	}
	if w.event().Settled() {
		t.Fatal("settled while its run goes on")
	}
	w.finishRuns(corev1.ConditionTrue)
	for range 2 {
		w.advanceAndReconcile(6 * time.Minute)
	}
	if !w.event().Settled() {
		t.Fatal("not settled although the run is over")
	}
}

// E4: the runs of a Repository that is recreated within that time are reported.
func TestRecreatedRepositoryReportsItsRuns(t *testing.T) {
	t.Parallel()
	w := orphaned(t)
	w.finishRuns(corev1.ConditionTrue)
	w.advanceAndReconcile(time.Second)
	w.advanceAndReconcile(6 * time.Minute)
	w.repository = func(r *pacv1alpha1.Repository) {
		r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "token"}}
	}
	w.settle(corev1.ConditionTrue)
	if got := w.conclusions()["hello"]; got != status.Success {
		t.Errorf("the check says %q, want success", got)
	}
}

// E4: a reconcile without a slot of the Git host has not checked whether the Repository is still
// gone. It may have been recreated while it was waited for.
func TestReportWithoutASlotIsNotGivenUp(t *testing.T) {
	t.Parallel()
	w := orphaned(t)
	w.finishRuns(corev1.ConditionTrue)
	w.advanceAndReconcile(time.Second)
	w.advanceAndReconcile(6 * time.Minute)
	w.repository = func(r *pacv1alpha1.Repository) {
		r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "gitlab", Secret: &pacv1alpha1.Secret{Name: "token"}}
	}
	// another event's
	release, _ := w.process().queue.AcquireService(fairqueue.Request{Namespace: "other", Host: "git.example"})
	for range 6 {
		w.advanceAndReconcile(time.Minute)
		w.alive.repositoryChanged(nil, repository())
	}
	if w.event().Settled() {
		t.Fatal("the verdict is dropped although its Repository is there and only the turn was missing")
	}
	release()
	w.settle(corev1.ConditionTrue)
	if got := w.conclusions()["hello"]; got != status.Success {
		t.Errorf("the check says %q, want success", got)
	}
}

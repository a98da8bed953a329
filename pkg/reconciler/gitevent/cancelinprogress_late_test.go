// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/supersede"
)

func TestLatePushRunsPipelinesThatTheNewestHasNot(t *testing.T) {
	t.Parallel()
	for pipeline, want := range map[string]string{"hello": "", "docs": "1"} {
		w := pushes(t, 2, "'true'")
		for _, e := range w.events() {
			happened := metav1.NewTime(w.clock.Now().Add(-time.Minute))
			if e.Spec.HappenedAt = &happened; e.Name == "push-2" {
				e.Labels = map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
				e.Status.Phase, e.Status.Plan = v1alpha1.PhaseSettled, &v1alpha1.Plan{HeadSHA: e.Spec.SHA}
				e.Status.Runs = []v1alpha1.Run{
					{Pipeline: pipeline, Name: "run", UID: "uid", CancelInProgress: true, Result: &v1alpha1.Result{}},
				}
			}
			w.must(w.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), next(&e), system))
		}
		for range 2 {
			_, _ = w.reconcileEvent("push-1")
			w.advance(supersede.Lag)
		}
		runs, result := w.runs(), w.eventNamed("push-1").Status.Runs[0].Result
		if started := len(runs) == 1; started != (want == "1") || started == (result != nil) {
			t.Errorf("the newest has run %s: %d runs, %+v", pipeline, len(runs), w.eventNamed("push-1").Status)
		}
	}
}

func TestAnnotatingOlderEventsIsRetried(t *testing.T) {
	t.Parallel()
	w := pushes(t, 2, "'true'")
	_, _ = w.reconcileEvent("push-1")
	w.asked = func(action clienttesting.Action) error {
		if patch, ok := action.(clienttesting.PatchAction); ok && patch.GetName() == "push-1" {
			return errRefused
		}
		return nil
	}
	for range 3 {
		if _, err := w.reconcileEvent("push-2"); err == nil {
			t.Error("a refused patch is not tried again")
		}
		w.advance(time.Minute)
	}
	if _, started := w.annotations(); started != "12" {
		t.Errorf("going on: %q, want both", started)
	}
	w.asked = nil
	_, _ = w.reconcileEvent("push-2")
	_, _ = w.reconcileEvent("push-1")
	if told, started := w.annotations(); told != "1" || started != "2" {
		t.Errorf("told to end: %q, going on: %q", told, started)
	}
}

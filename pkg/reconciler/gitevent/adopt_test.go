// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// E4: the same if the Repository is deleted after that kill. The event is no event without runs,
// whose redelivery would run again.
func TestExistingRunIsAdoptedWithoutItsRepository(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = only("create pipelineruns", outcome{kill: true, apply: true})
	_, _ = w.reconcile()
	w.hook = nil
	w.must(w.own.Tracker().Delete(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), tenant, "app"))
	w.repository = func(r *pacv1alpha1.Repository) { r.Spec.URL = "https://git.example/acme/another" }
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
	if got := w.event().Status.Disposition; got != v1alpha1.DispositionRuns {
		t.Errorf("disposition %s of an event with a run", got)
	}
}

// ADR 13: the reports of several runs may take seconds each, when the Git service is slow. What was
// created is recorded before the next of them.
func TestCreatedRunIsRecordedBeforeTheNextReport(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("a"), helloFile("b"), helloFile("c"))
	reports := 0
	w.hook = func(_ int, call string) outcome {
		if call == "put check in_progress" {
			if reports++; reports > 1 && w.event().Status.Runs[0].UID == "" {
				t.Errorf("before report %d nothing tells that the first run was created", reports)
			}
			w.clock.SetTime(w.clock.Now().Add(2 * attempt.MaxUnrecorded))
		}
		return outcome{}
	}
	_, _ = w.reconcile()
	if reports != 3 {
		t.Errorf("%d reports, want three", reports)
	}
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// C3, C9: a process is killed after it has created a run. Admission judges a create before the API
// server looks whether the name is taken: the run itself has used up the quota, or a policy allows
// no second one. The run is there all the same, and is reported.
func TestARunThatIsThereIsAdoptedAlthoughItsCreateIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call string
		err  error
	}{
		"a used-up quota": {"create pipelineruns", errQuota}, "a policy": {"create pipelineruns", errDenied}, "a quota of secrets": {"create secrets", errQuota},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, helloFile("hello"))
			w.hook = only("create pipelineruns", outcome{kill: true, apply: true})
			if killed, _ := w.reconcile(); !killed || len(w.runs()) != 1 {
				t.Fatal("it was not killed after the create")
			}
			w.hook = only(test.call, outcome{err: test.err})
			w.settle(corev1.ConditionTrue)
			w.wantSuccess()
			for _, write := range w.git.writes {
				if write.Conclusion == status.Failure {
					t.Errorf("the check said %q of a run that is there", write.Title)
				}
			}
		})
	}
}

// E4: the same if the Repository is deleted after that kill. The event is no event without runs,
// whose redelivery would run again.
func TestARunThatIsThereIsAdoptedAlthoughItsRepositoryIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, helloFile("hello"))
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
func TestWhatIsCreatedIsRecordedBeforeTheNextReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, helloFile("a"), helloFile("b"), helloFile("c"))
	reports := 0
	w.hook = func(_ int, call string) outcome {
		if call == "put check in_progress" {
			if reports++; reports > 1 && w.event().Status.Runs[0].UID == "" {
				t.Errorf("before report %d nothing tells that the first run was created", reports)
			}
			w.clock.SetTime(w.clock.Now().Add(2 * attempt.AfterCreate))
		}
		return outcome{}
	}
	_, _ = w.reconcile()
	if reports != 3 {
		t.Errorf("%d reports, want three", reports)
	}
}

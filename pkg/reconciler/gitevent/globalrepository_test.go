// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// B9: an unreadable global Repository is waited for; only a live NotFound means that there is none.
func TestGlobalRepositoryCompletesSettings(t *testing.T) {
	t.Parallel()
	global := &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "pipelines-as-code"},
		Spec:       pacv1alpha1.RepositorySpec{Settings: &pacv1alpha1.Settings{PipelineRunProvenance: "default_branch"}},
	}
	w := newEnv(t, helloFile("hello"))
	if err := w.own.Tracker().Add(global); err != nil {
		t.Fatal(err)
	}
	reads := 0
	w.hook = func(_ int, call string) outcome {
		if call == "get repositories" {
			reads++
			return outcome{err: apierrors.NewServiceUnavailable("down")}
		}
		return outcome{}
	}
	for range 3 {
		if _, err := w.reconcile(); err == nil || w.event().Status.Plan != nil || len(w.git.writes) != 0 {
			t.Fatalf("error %v, plan %+v: want a wait", err, w.event().Status.Plan)
		}
	}
	w.mu.Lock()
	w.hook = nil
	w.mu.Unlock()
	w.settle(corev1.ConditionTrue)
	if e := w.event(); reads != 3 || e.Status.Disposition != v1alpha1.DispositionRuns ||
		e.Status.Plan.DefinitionSHA != defaultSHA {
		t.Errorf("%d reads, %+v: want the definitions of the default branch, as the global Repository says", reads, e.Status)
	}
}

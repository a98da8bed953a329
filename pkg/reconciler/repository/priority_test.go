// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// A Repository is reconciled with each of its events. Its expression is compiled when it or its
// params have changed.
func TestExpressionIsCompiledOnce(t *testing.T) {
	app := repo("one", "app", appURL)
	app.Spec.Settings = &pacv1alpha1.Settings{QueuePriority: "urgency"}
	w := newEnv(t, app)
	owner := types.NamespacedName{Namespace: "one", Name: "app"}
	judge := func() error {
		w.reconcile("one/app")
		return w.r.priorities.known[owner].err
	}
	first := judge()
	if again := judge(); first == nil || again != first { //nolint:errorlint // the very same value
		t.Errorf("it is compiled again: %v", first)
	}
	w.wantCondition("one", "app", pacv1alpha1.RepositorySettings, "False BadExpression")
	changed := w.repository("one", "app")
	changed.Spec.Settings.QueuePriority = "int(urgency)"
	w.must(w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), changed, "one"))
	if second := judge(); second == nil || second == first { //nolint:errorlint // another value than the first
		t.Errorf("another one is %v", second)
	}
	changed = w.repository("one", "app")
	changed.Spec.Params = &[]pacv1alpha1.Params{{Name: "urgency"}}
	w.must(w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), changed, "one"))
	if err := judge(); err != nil {
		t.Errorf("with the param it is %v", err)
	}
	w.wantCondition("one", "app", pacv1alpha1.RepositorySettings, "True NoProblem")
	w.delete("one", "app")
	if err := judge(); err != nil || len(w.r.priorities.known) != 0 {
		t.Errorf("of what is gone it knows %v", w.r.priorities.known)
	}
}

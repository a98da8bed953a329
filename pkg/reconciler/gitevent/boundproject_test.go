// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// S14: an event of another project than the one that the URL is bound to is ignored before anything
// of it is read, and its redelivery is processed again.
func TestEventOfAnotherProjectIsIgnored(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.bindProject(v1alpha1.ProjectIdentity{ID: 4})
	for range 3 {
		_, _ = w.reconcile()
	}
	e := w.event()
	if !e.Settled() || e.Status.Disposition != v1alpha1.DispositionIgnored ||
		e.Status.Plan.Reason != v1alpha1.ReasonAnotherRepository || !e.MayRunAgain() {
		t.Errorf("%s with %+v, want it ignored and ready to be sent again", e.Status.Disposition, e.Status.Plan)
	}
	if len(w.git.writes) != 0 || len(w.runs()) != 0 || w.secrets() != 1 || len(w.git.read) != 0 || w.git.heads != 0 {
		t.Errorf("%d runs, %d secrets, checks %v, read %v: want nothing but the App's secret", len(w.runs()), w.secrets(),
			w.git.writes, w.git.read)
	}
}

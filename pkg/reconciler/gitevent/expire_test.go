// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// What a paused process creates after another one has settled the event is deleted by a later sweep.
func TestASecretThatComesLateIsDeleted(t *testing.T) {
	t.Parallel()
	w := running(t)
	late := w.secret()
	w.settle(corev1.ConditionTrue)
	w.must(w.kube.Tracker().Add(late))
	other := late.DeepCopy()
	other.Name = "a-teams-own"
	w.must(w.kube.Tracker().Add(other))
	w.must(w.kube.Tracker().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: planSecret("push-1")}})) // of a plan that was not accepted
	w.edit(func(e *v1alpha1.GitEvent) { e.Status.SettledAt = &metav1.Time{Time: w.clock.Now()} })
	for _, s := range []struct {
		name  string
		after time.Duration
		left  int // with the App's
	}{
		{"its creator may still be under way", sweepEvery - time.Second, 4},
		{"its creator has ended", time.Second, 2},
	} {
		w.pass(s.after)
		r := w.reconciler()
		settled, err := r.settled(t.Context())
		w.must(err)
		w.must(r.collectSecrets(t.Context(), settled))
		if got := w.secrets(); got != s.left {
			t.Errorf("%s: %d secrets, want %d", s.name, got, s.left)
		}
	}
	w.pass(2 * sweepEvery)
	w.calls = nil
	r := w.reconciler()
	settled, err := r.settled(t.Context())
	w.must(err)
	w.must(r.collectSecrets(t.Context(), settled))
	if slices.Contains(w.calls, "delete secrets") {
		t.Error("an event that settled long ago costs no more calls")
	}
}

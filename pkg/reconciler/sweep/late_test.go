// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	names "github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
)

// A paused process may create a Secret after another one has settled the event. A later pass
// deletes it. Events of one process cost nothing.
func TestLateSecretIsDeleted(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	event, other := w.settled("taken over"), w.settled("other")
	event.Status.LateSecrets = true
	event.Status.Runs = []v1alpha1.Run{{Namespace: "team", Name: "run", UID: "run-uid"},
		{Namespace: "team", Name: "left", UID: "left-uid"}, {Namespace: "team", Name: "theirs"}}
	other.Status.Runs = []v1alpha1.Run{{Namespace: "team", Name: "other"}}
	late := []*corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: names.SecretName("run")}},
		// of a plan that was not accepted
		{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.PlanSecretName(event.Name)}},
	}
	w.must(w.kube.Tracker().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a-teams-own"}}))
	w.must(w.kube.Tracker().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{ // its event has left it to its run
		Namespace: "team", Name: names.SecretName("left"),
		OwnerReferences: []metav1.OwnerReference{{Kind: "PipelineRun", Name: "left", UID: "left-uid"}},
	}}))
	// another installation has run the same delivery
	w.must(w.kube.Tracker().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: names.SecretName("theirs"),
		Labels: map[string]string{plumbline.InstallationLabel: "another"},
	}}))
	for _, s := range []struct {
		name  string
		after time.Duration
		left  int
		mark  bool
	}{
		{"its creator may still be under way", lateAfter - time.Second, 5, true},
		{"its creator has ended", time.Second, 3, true},
		{"another one was paused for longer", lateFor - lateAfter, 3, false},
	} {
		for _, secret := range late {
			_ = w.kube.Tracker().Add(secret)
		}
		w.later(s.after)
		w.pass()
		if got := w.secrets(); got != s.left || w.events[event.Name].Status.LateSecrets != s.mark {
			t.Errorf("%s: %d secrets, mark %v, want %d, %v", s.name, got, w.events[event.Name].Status.LateSecrets, s.left,
				s.mark)
		}
	}
	w.kube.ClearActions()
	w.pass()
	if calls := w.kube.Actions(); len(calls) != 0 {
		t.Errorf("an event that settled long ago costs %v", calls)
	}
}

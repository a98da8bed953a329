// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// The global Repository's token is sent to the host that it names, not to the host of a Repository
// that uses it.
func TestGlobalTokenIsSentOnlyToItsOwnHost(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.git.own = true
	w.repository = func(r *pacv1alpha1.Repository) { r.Spec.GitProvider = &pacv1alpha1.GitProvider{Type: "fake"} }
	w.must(w.own.Tracker().Add(&pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "pipelines-as-code"},
		Spec: pacv1alpha1.RepositorySpec{
			GitProvider: &pacv1alpha1.GitProvider{Secret: &pacv1alpha1.Secret{Name: "all"}},
		},
	}))
	w.must(w.kube.Tracker().Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "all"}, Data: map[string][]byte{"provider.token": []byte("t")},
	}))
	_, _ = w.reconcile()
	if len(w.git.placedBy) == 0 {
		t.Fatalf("never connected: %+v", w.event().Status.Waits)
	}
	for _, url := range w.git.placedBy {
		if url != "" {
			t.Errorf("the token's place is read off %s", url)
		}
	}
}

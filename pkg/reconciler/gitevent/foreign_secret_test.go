// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Another installation has run the same delivery before the namespace moved here, so its Secret has
// the name of ours, and its run may go on. The Secret is not changed. When our event settles, it is
// not deleted and its token not revoked.
func TestSecretOfAnotherInstallationIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = always("create secrets", errRefused)
	_, _ = w.reconcile()
	w.hook = nil
	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: tenant, Name: w.event().Status.Runs[0].Secret,
			Labels:      map[string]string{plumbline.InstallationLabel: "another"},
			Annotations: map[string]string{plumbline.TokenAnnotation: plumbline.TokenOwn},
		},
		Data: map[string][]byte{"git-provider-token": []byte("theirs")},
	}
	w.must(w.kube.Tracker().Add(theirs.DeepCopy()))
	for range 3 {
		_, _ = w.reconcile()
	}
	if reason := w.event().Status.GetCondition(v1alpha1.GitEventCreated).Reason; reason != "ForeignSecret" ||
		len(w.runs()) != 0 {
		t.Errorf("Created is %s with %d runs", reason, len(w.runs()))
	}
	w.cancelled()
	w.until(w.settled)
	left, err := w.kube.CoreV1().Secrets(tenant).Get(t.Context(), theirs.Name, metav1.GetOptions{})
	if err != nil || !equality.Semantic.DeepEqual(left.ObjectMeta, theirs.ObjectMeta) ||
		!equality.Semantic.DeepEqual(left.Data, theirs.Data) {
		t.Errorf("the Secret is %+v, %v", left, err)
	}
	for _, token := range w.git.revoked {
		if token == "theirs" {
			t.Error("its token is revoked")
		}
	}
}

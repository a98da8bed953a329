// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deployments are those of config/.
func deployments() []string { return []string{"plumbline-receiver", "plumbline-controller"} }

// podOf returns a pod as a Deployment's ReplicaSet makes it.
func podOf(t *testing.T, deployment, name string) *corev1.Pod {
	t.Helper()
	d, err := Deployment(deployment)
	must(t, err)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: product, Labels: d.Spec.Template.Labels},
		Spec:       d.Spec.Template.Spec,
	}
}

// The API server's own PodSecurity admission accepts the pods of config/, and refuses them when
// they may run as root (test/manifests has what it does not require). For a Deployment it would
// only warn.
func TestPodsAreAdmittedAsRestricted(t *testing.T) {
	ctx := within(t)
	namespace, err := shared.Kube.CoreV1().Namespaces().Get(ctx, product, metav1.GetOptions{})
	if err != nil || namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Fatalf("namespace %v, %v: want Pod Security restricted enforced", namespace.Labels, err)
	}
	for _, deployment := range deployments() {
		pod, dry := podOf(t, deployment, deployment+"-probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		if _, err := shared.Kube.CoreV1().Pods(product).Create(ctx, pod, dry); err != nil {
			t.Errorf("refused: %v", err)
		}
		pod.Spec.SecurityContext.RunAsNonRoot = nil
		_, err := shared.Kube.CoreV1().Pods(product).Create(ctx, pod, dry)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "violates PodSecurity") ||
			!strings.Contains(err.Error(), "runAsNonRoot") {
			t.Errorf("the API server says %v of a pod that may run as root", err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	registration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// leftOver is the webhook configuration of a Pipelines-as-Code.
const leftOver = "validation.pipelinesascode.tekton.dev"

// runPaC makes a Deployment of Pipelines-as-Code without a process. It is deleted with the test.
func runPaC(namespace, name string) func(context.Context, *testing.T) {
	return func(ctx context.Context, t *testing.T) {
		t.Helper()
		_, err := shared.Kube.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		if err != nil && !strings.Contains(err.Error(), "already exists") {
			t.Fatal(err)
		}
		labels := map[string]string{"app": name}
		_, err = shared.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(
			ctx, &registration.ValidatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: leftOver},
			}, metav1.CreateOptions{})
		must(t, err)
		_, err = shared.Kube.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "it", Image: "pac"}}}},
			},
		}, metav1.CreateOptions{})
		must(t, err)
	}
}

// removePaC takes away what runPaC made.
func removePaC(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	deployments := shared.Kube.AppsV1().Deployments(namespace)
	must(t, deployments.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	must(t, shared.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, leftOver,
		metav1.DeleteOptions{}))
}

// Next to a running Pipelines-as-Code a controller waits, and says why. Once the setting says that
// it runs on purpose, the same process starts. With the flag, or next to one that is scaled to
// zero, a controller starts at once. When it starts it warns of every other problem.
func TestDoesNotStartNextToPipelinesAsCode(t *testing.T) {
	const namespace, name = "tekton-pipelines", "pipelines-as-code-controller" // where the Tekton operator puts it
	ctx := within(t)
	runPaC(namespace, name)(ctx, t)
	t.Cleanup(func() { removePaC(context.WithoutCancel(ctx), t, namespace) })
	waits, err := shared.Controller(ctx, false)
	must(t, err)
	t.Cleanup(func() { _ = waits.Kill() })
	started := make(chan error, 1)
	go func() { started <- waits.Start(ctx) }()
	eventually(ctx, t, "the controller says what it waits for", func() error {
		return printed(waits, "Waiting: Deployment "+namespace+"/"+name+" runs in this cluster")
	})
	select {
	case err := <-started:
		t.Errorf("it starts beside Pipelines-as-Code: %v", err)
	default:
	}
	requireStart(ctx, t, "-coexist-with-pac")
	setPaCURL(ctx, t, "http://pac:8080")
	must(t, <-started)
	setPaCURL(ctx, t, "")
	none := int32(0)
	change(ctx, t, shared.Kube.AppsV1().Deployments(namespace), name,
		func(d *appsv1.Deployment) { d.Spec.Replicas = &none })
	next := requireStart(ctx, t)
	for _, warning := range []string{
		"the installation: ValidatingWebhookConfiguration validation.pipelinesascode.tekton.dev is left over",
		"the installation: Service plumbline/plumbline-receiver selects no pod",
	} {
		eventually(ctx, t, "the controller warns", func() error { return printed(next, warning) })
	}
}

// setPaCURL sets pipelines-as-code-url.
func setPaCURL(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	patch := fmt.Sprintf(`{"data":{"pipelines-as-code-url":%q}}`, url)
	_, err := shared.Kube.CoreV1().ConfigMaps("plumbline").Patch(ctx, "plumbline", types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	must(t, err)
}

// requireStart requires that a controller starts; it ends with the test.
func requireStart(ctx context.Context, t *testing.T, flags ...string) *Process {
	t.Helper()
	p, err := shared.Controller(ctx, false, flags...)
	must(t, err)
	t.Cleanup(func() { _ = p.Kill() })
	must(t, p.Start(ctx))
	return p
}

// printed is nil when the process has printed the text exactly once.
func printed(p *Process, text string) error {
	data, err := os.ReadFile(p.Log())
	if err != nil {
		return err
	}
	if n := strings.Count(string(data), text); n != 1 {
		return fmt.Errorf("%s has printed %q %d times, want once", p.Name(), text, n)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/plumbline-ci/plumbline/pkg/runtime/openshift"
)

// The controller's account finds the console of OpenShift without a right of config/: OpenShift
// lets every account get the ConfigMap, and none watch it.
func TestOpenShiftConsoleIsFound(t *testing.T) {
	const namespace, name, url = "openshift-config-managed", "console-public", "https://console.apps.example.com"
	ctx := within(t)
	account := controllerAccount()
	found := func() string {
		return (&openshift.Console{}).Find(ctx, kubernetes.NewForConfigOrDie(account))()
	}
	if got := found(); got != "" {
		t.Errorf("a cluster that is not OpenShift has the console %q", got)
	}
	_, err := shared.Kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	must(t, err)
	_, err = shared.Kube.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"consoleURL": url},
	}, metav1.CreateOptions{})
	must(t, err)
	serveOpenShift(t)
	if got := found(); got != "" {
		t.Errorf("an account that may not read the ConfigMap has the console %q", got)
	}
	_, err = shared.Kube.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name}, Verbs: []string{"get"}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = shared.Kube.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}},
	}, metav1.CreateOptions{})
	must(t, err)
	eventually(ctx, t, "the console", func() error {
		if got := found(); got != url {
			return fmt.Errorf("the console is %q, want %q", got, url)
		}
		return nil
	})
}

// serveOpenShift makes the cluster serve OpenShift's group of configurations, until the test ends.
func serveOpenShift(t *testing.T) {
	t.Helper()
	ctx := within(t)
	crds := dynamic.NewForConfigOrDie(shared.Cluster.RESTConfig()).Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	const name = "consoles.config.openshift.io"
	_, err := crds.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": definitions, "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": "config.openshift.io", "scope": "Cluster",
			"names": map[string]any{"kind": "Console", "plural": "consoles", "singular": "console"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		if err := crds.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	eventually(ctx, t, "the group of OpenShift", func() error {
		return shared.Kube.Discovery().RESTClient().Get().AbsPath("/apis/config.openshift.io").Do(ctx).Error()
	})
}

// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An operator may have added the accounts of a second installation to the bindings of the first.
func TestBindingsOfTwoInstallationsStay(t *testing.T) {
	e := newEnv(t, []runtime.Object{controller(system), controller("second")})
	kind := schema.GroupVersionResource{Group: rbac, Version: "v1", Resource: "clusterrolebindings"}
	bindings := e.dynamic.Resource(kind)
	shared := binding("ClusterRoleBinding", "", "plumbline-controller", system)
	subjects := shared.Object["subjects"].([]any) //nolint:forcetypeassert // binding made it
	shared.Object["subjects"] = append(subjects, map[string]any{
		"kind": "ServiceAccount", "name": "plumbline-controller", "namespace": "second",
	})
	if _, err := bindings.Update(t.Context(), shared, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.Yes = true
	if err := e.Uninstaller.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := e.deleted(); slices.Contains(all, "clusterrolebindings/plumbline-controller") ||
		!slices.Contains(all, "rolebindings/plumbline-controller-secrets") {
		t.Errorf("deleted %q", all)
	}
	e.says("ClusterRoles, kinds and shared bindings, which the installation in namespace second uses")
}

// Its own names of Pipelines-as-Code are in another namespace than Plumbline. Those of
// Pipelines-as-Code itself stay.
func TestNamesOfPipelinesAsCodeAreDeleted(t *testing.T) {
	e := newEnv(t, []runtime.Object{controller(system)})
	for _, o := range []struct{ apiVersion, kind, resource, name string }{
		{"v1", "Service", "services", "pipelines-as-code-controller"},
		{"v1", "ConfigMap", "configmaps", "pipelines-as-code-info"},
		{rbac + "/v1", "Role", "roles", "pipelines-as-code-info"},
		{rbac + "/v1", "RoleBinding", "rolebindings", "pipelines-as-code-info"},
	} {
		alias := thing(o.apiVersion, o.kind, "openshift-pipelines", o.name)
		theirs := thing(o.apiVersion, o.kind, "theirs", o.name)
		theirs.SetLabels(map[string]string{"app.kubernetes.io/part-of": "pipelines-as-code"})
		kind := alias.GroupVersionKind().GroupVersion().WithResource(o.resource)
		for _, object := range []*unstructured.Unstructured{alias, theirs} {
			_, err := e.dynamic.Resource(kind).
				Namespace(object.GetNamespace()).
				Create(t.Context(), object, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	e.Yes = true
	if err := e.Uninstaller.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(e.deleted(), func(name string) bool { return !strings.Contains(name, "/pipelines-as-code-") })
	want := []string{
		"services/pipelines-as-code-controller", "configmaps/pipelines-as-code-info",
		"rolebindings/pipelines-as-code-info", "roles/pipelines-as-code-info",
	}
	if !slices.Equal(got, want) {
		t.Errorf("deleted %q", got)
	}
}

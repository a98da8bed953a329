// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Narrow gives the controller its rights in one namespace only, as config/optional/namespaces.yaml
// says.
func (i *Installation) Narrow(ctx context.Context, namespace string) error {
	root, err := root()
	if err != nil {
		return err
	}
	objects, err := objectsOf(filepath.Join(root, "config", "optional", "namespaces.yaml"))
	if err != nil {
		return err
	}
	move(objects, i.Namespace)
	for _, object := range objects {
		if object.GetNamespace() == "team-a" {
			object.SetNamespace(namespace)
		}
	}
	return i.narrow(ctx, objects)
}

func (i *Installation) narrow(ctx context.Context, objects []*unstructured.Unstructured) error {
	if err := apply(ctx, i.Cluster, objects, all); err != nil {
		return fmt.Errorf("binding roles in one namespace: %w", err)
	}
	for _, role := range []string{"plumbline-controller", "plumbline-controller-secrets", "plumbline-controller-logs"} {
		if err := i.Kube.RbacV1().ClusterRoleBindings().Delete(ctx, own(role, i.Namespace),
			metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("taking the rights of %s everywhere: %w", role, err)
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Right is one verb on one resource that config/ grants to a ServiceAccount. Resource is
// "group/resource" or "group/resource/subresource"; the core group is empty.
type Right struct{ Account, Verb, Resource string }

// Rights lists what config/ grants to the ServiceAccounts of Plumbline, cluster-wide or in its
// namespace.
func Rights() ([]Right, error) {
	objects, err := manifests()
	if err != nil {
		return nil, err
	}
	roles := map[string][]rbacv1.PolicyRule{}
	for _, object := range objects {
		if kind := object.GetKind(); kind == "Role" || kind == "ClusterRole" {
			var role rbacv1.ClusterRole // a Role has the same rules
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
				return nil, fmt.Errorf("%s %s: %w", kind, object.GetName(), err)
			}
			roles[kind+"/"+role.Name] = role.Rules
		}
	}
	var rights []Right
	for _, object := range objects {
		if kind := object.GetKind(); kind == "RoleBinding" || kind == "ClusterRoleBinding" {
			bound, err := bound(object, roles)
			if err != nil {
				return nil, err
			}
			rights = append(rights, bound...)
		}
	}
	return rights, nil
}

func bound(object *unstructured.Unstructured, roles map[string][]rbacv1.PolicyRule) ([]Right, error) {
	var binding rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding); err != nil {
		return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	rules, known := roles[binding.RoleRef.Kind+"/"+binding.RoleRef.Name]
	if !known {
		return nil, fmt.Errorf("%s %s: config/ has no %s %s", object.GetKind(), object.GetName(), binding.RoleRef.Kind,
			binding.RoleRef.Name)
	}
	var rights []Right
	for _, subject := range binding.Subjects {
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						rights = append(rights, Right{Account: subject.Name, Verb: verb, Resource: group + "/" + resource})
					}
				}
			}
		}
	}
	return rights, nil
}

// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// The optional rights are those that config/ gives: the watches everywhere, and all others where
// the roles are bound.
func TestOptionalRightsAreThoseOfTheController(t *testing.T) {
	all := read(t).rules()
	watches := rbacv1.ClusterRole{}
	bound := map[string]string{}
	for _, document := range documents(t, filepath.Join(config, "optional", "namespaces.yaml")) {
		var binding rbacv1.RoleBinding
		must(t, yaml.Unmarshal(document, &binding))
		if binding.Kind == "ClusterRole" {
			must(t, yaml.UnmarshalStrict(document, &watches))
			continue
		}
		want := rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: "plumbline-controller"}
		if len(binding.Subjects) != 1 || binding.Subjects[0] != want {
			t.Errorf("%s %s is for %v", binding.Kind, binding.Name, binding.Subjects)
		}
		bound[binding.Namespace+" "+binding.RoleRef.Name] = binding.Kind
	}
	for _, role := range []string{" plumbline-controller-watch", namespace + " plumbline-controller",
		"team-a plumbline-controller", "team-a plumbline-controller-secrets",
		"team-a plumbline-controller-logs"} {
		if bound[role] == "" {
			t.Errorf("no binding of %s", role)
		}
	}
	for _, rule := range all["ClusterRole plumbline-controller"] {
		for _, verb := range rule.Verbs {
			everywhere := len(rule.ResourceNames) > 0 ||
				slices.Contains(rule.Verbs, "watch") && (verb == "list" || verb == "watch")
			for _, resource := range rule.Resources {
				if allows(watches.Rules, rule.APIGroups[0], resource, verb) != everywhere {
					t.Errorf("%s %s: everywhere is not %t", verb, resource, everywhere)
				}
			}
		}
	}
}

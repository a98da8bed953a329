// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

func TestNoWildcards(t *testing.T) {
	for role, rules := range read(t).rules() {
		for _, rule := range rules {
			if slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames), "*") ||
				len(rule.NonResourceURLs) != 0 {
				t.Errorf("%s: %v", role, rule)
			}
		}
	}
}

// rules are those of every role, by kind and name.
func (a *installation) rules() map[string][]rbacv1.PolicyRule {
	all := map[string][]rbacv1.PolicyRule{}
	for _, role := range a.clusterRoles {
		all["ClusterRole "+role.Name] = role.Rules
	}
	for _, role := range a.roles {
		all["Role "+role.Name] = role.Rules
	}
	return all
}

// A stolen token must not list the cluster's Secrets, grant itself more, or start what is not a
// PipelineRun.
func TestForbiddenRights(t *testing.T) {
	all := read(t).rules()
	for name, test := range map[string]struct {
		role, group, resource string
		verbs                 []string
	}{
		"list the cluster's Secrets": {"", "", "secrets", []string{"list", "watch", "update"}},
		// a role of its own does: it can be narrowed
		"read Secrets of teams": {"ClusterRole plumbline-controller", "", "secrets", []string{"get"}},
		"reach Secrets everywhere from the receiver": {"ClusterRole plumbline-receiver", "", "secrets",
			[]string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		"write Secrets from the receiver": {
			"Role plumbline-receiver", "", "secrets", []string{"get", "create", "update", "patch", "delete"},
		},
		"start runs from the receiver": {
			"ClusterRole plumbline-receiver", "tekton.dev", "pipelineruns", []string{"create", "patch", "update", "delete"},
		},
		"start pods":  {"", "", "pods", []string{"create", "patch", "update"}},
		"impersonate": {"", "", "users", []string{"impersonate"}},
		"grant rights": {
			"", "rbac.authorization.k8s.io", "clusterroles", []string{"bind", "escalate", "create", "update", "patch"},
		},
		"change a Repository from a controller": {"ClusterRole plumbline-controller", "pipelinesascode.tekton.dev",
			"repositories", []string{"create", "update", "patch", "delete"}},
		"replace runs, or delete many at once": {
			"ClusterRole plumbline-controller", "tekton.dev", "pipelineruns", []string{"deletecollection", "update"},
		},
		"rewrite what was received": {
			"Role plumbline-controller", "plumbline.dev", "gitevents", []string{"create", "update"},
		},
		"wait for a leader in the receiver": {"Role plumbline-receiver", "coordination.k8s.io", "leases",
			[]string{"get", "list", "watch", "create", "update", "patch"}},
		// it moves one line with a patch (docs/adr/0054)
		"forget or change what is remembered": {"Role plumbline-receiver", "plumbline.dev", "tombstonepages",
			[]string{"list", "watch", "create", "update", "delete"}},
		"read what was received in bulk": {
			"Role plumbline-receiver", "plumbline.dev", "eventpayloads", []string{"list", "watch", "update", "patch", "delete"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for role, rules := range all {
				if test.role != "" && role != test.role || test.role == "" && role[:4] == "Role" {
					continue
				}
				for _, verb := range test.verbs {
					if allows(rules, test.group, test.resource, verb) {
						t.Errorf("%s allows %s on %s", role, verb, test.resource)
					}
				}
			}
		})
	}
}

func allows(rules []rbacv1.PolicyRule, group, resource, verb string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
	})
}

// Secrets of teams are read by a role that does nothing else, so that it can be bound in chosen
// namespaces. The receiver reads none of them, and not the App's (S31).
func TestSecretReadRights(t *testing.T) {
	want := map[string]rbacv1.PolicyRule{
		"Role plumbline-receiver": {
			Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: shards(),
		},
		"Role plumbline-controller": {
			Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"},
		},
		"ClusterRole plumbline-controller-secrets": {
			Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"},
		},
	}
	got := map[string]rbacv1.PolicyRule{}
	for role, rules := range read(t).rules() {
		for _, rule := range rules {
			if slices.Contains(rule.Resources, "secrets") &&
				(slices.Contains(rule.Verbs, "get") || slices.Contains(rule.Verbs, "list")) {
				got[role] = rule
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	const role = "ClusterRole plumbline-controller-secrets"
	if n := len(read(t).rules()[role]); n != 1 {
		t.Errorf("%s: %d rules beside reading Secrets, want none", role, n-1)
	}
}

// shards are the Secrets that receivers read: as many as the binaries use.
func shards() (names []string) {
	for shard := range webhooksecret.Shards {
		names = append(names, webhooksecret.ShardName(shard))
	}
	return names
}

func TestBindingsTieEachRoleToItsServiceAccount(t *testing.T) {
	all := read(t)
	type binding struct {
		name    string
		ref     rbacv1.RoleRef
		subject []rbacv1.Subject
	}
	var bindings []binding
	for _, b := range all.clusterBindings {
		bindings = append(bindings, binding{"ClusterRole ", b.RoleRef, b.Subjects})
	}
	for _, b := range all.bindings {
		bindings = append(bindings, binding{"Role ", b.RoleRef, b.Subjects})
	}
	if len(bindings) != 6 {
		t.Fatalf("%d bindings, want two for each process, and two for the controller's reading of Secrets and logs",
			len(bindings))
	}
	rules := all.rules()
	for _, b := range bindings {
		if rules[b.name+b.ref.Name] == nil {
			t.Errorf("binding to %s%s, which does not exist", b.name, b.ref.Name)
		}
		want := rbacv1.Subject{
			Kind:      "ServiceAccount",
			Namespace: namespace,
			Name:      strings.TrimSuffix(strings.TrimSuffix(b.ref.Name, "-secrets"), "-logs"),
		}
		if len(b.subject) != 1 || b.subject[0] != want || !all.names["ServiceAccount "+namespace+"/"+want.Name] {
			t.Errorf("%s%s is bound to %v, want %v", b.name, b.ref.Name, b.subject, want)
		}
	}
	for _, deployment := range all.deployments {
		if deployment.Spec.Template.Spec.ServiceAccountName != deployment.Name {
			t.Errorf("Deployment %s runs as %q", deployment.Name, deployment.Spec.Template.Spec.ServiceAccountName)
		}
	}
}

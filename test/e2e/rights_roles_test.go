// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// readRoles lists every right that a role of the installation grants.
func (l *rightsProbe) readRoles() {
	l.t.Helper()
	add := func(role *probedRole, rules []rbacv1.PolicyRule) {
		role.account = strings.TrimSuffix(role.name, "-"+l.Namespace)
		role.account = strings.TrimSuffix(strings.TrimSuffix(role.account, "-secrets"), "-logs")
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						l.rights = append(l.rights, &probedRight{role: role, names: rule.ResourceNames, Right: installation.Right{
							Account: role.account, Verb: verb, Resource: group + "/" + resource,
						}})
					}
				}
			}
		}
	}
	for _, name := range []string{"plumbline-receiver", "plumbline-controller"} {
		role, err := l.Kube.RbacV1().Roles(l.Namespace).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		add(&probedRole{namespace: l.Namespace, name: name}, role.Rules)
		for _, suffix := range []string{"-", "-secrets-", "-logs-"} {
			if suffix != "-" && name == "plumbline-receiver" {
				continue // the receiver reads no Secret and no log of a team
			}
			role, err := l.Kube.RbacV1().ClusterRoles().Get(l.ctx, name+suffix+l.Namespace, metav1.GetOptions{})
			l.must(err)
			add(&probedRole{name: role.Name}, role.Rules)
		}
	}
}

func (l *rightsProbe) roles() (all []*probedRole) {
	for _, r := range l.rights {
		if !slices.Contains(all, r.role) {
			all = append(all, r.role)
		}
	}
	return all
}

// write writes to a role the rights that are granted so far.
func (l *rightsProbe) write(role *probedRole) {
	rules := []rbacv1.PolicyRule{}
	for _, r := range l.rights {
		if r.role == role && r.granted {
			group, resource, _ := strings.Cut(r.Resource, "/")
			rules = append(rules, rbacv1.PolicyRule{
				APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{r.Verb}, ResourceNames: r.names,
			})
		}
	}
	var err error
	if meta := (metav1.ObjectMeta{Name: role.name, Namespace: role.namespace}); role.namespace == "" {
		_, err = l.Kube.RbacV1().ClusterRoles().Update(l.ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
			metav1.UpdateOptions{})
	} else {
		_, err = l.Kube.RbacV1().Roles(role.namespace).Update(l.ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules},
			metav1.UpdateOptions{})
	}
	if err != nil {
		l.faults = append(l.faults, err.Error())
	}
}

// may asks the API server whether the account has the right where its role gives it.
func (l *rightsProbe) may(r *probedRight) bool {
	l.t.Helper()
	group, resource, _ := strings.Cut(r.Resource, "/")
	resource, subresource, _ := strings.Cut(resource, "/")
	review, err := l.Kube.AuthorizationV1().SubjectAccessReviews().Create(
		l.ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + l.Namespace + ":" + r.Account,
			Groups: []string{"system:serviceaccounts", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: r.Verb, Group: group, Resource: resource, Subresource: subresource, Namespace: r.role.namespace,
				Name: strings.Join(r.names[:min(1, len(r.names))], ""),
			},
		}}, metav1.CreateOptions{})
	l.must(err)
	return review.Status.Allowed
}

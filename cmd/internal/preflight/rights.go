// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// narrowed ends the names of roles that an operator may bind in chosen namespaces only
// (config/210-clusterroles.yaml). It is no problem if they are not bound everywhere. If the served
// namespaces are listed, each of them needs a binding.
const narrowed = "-secrets"

// optional ends the names of roles that may be left out: checks on commits then say what is
// missing.
const optional = "-logs"

// rights checks each right of the component's roles for this account. Every account may do that
// (ClusterRole system:basic-user).
func (c *Checker) rights(ctx context.Context) []Finding {
	var all []Finding
	listed := c.listed(ctx)
	for _, role := range c.want.roles[c.Component] {
		if role.kind == "ClusterRole" && (strings.HasSuffix(role.name, optional) ||
			strings.HasSuffix(role.name, narrowed) && len(listed) == 0) {
			continue
		}
		for _, rule := range role.rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					found := c.right(ctx, granted{role, rule, listed}, group, resource)
					all = append(all, found...)
					if len(found) > 0 && found[0].Err != nil { // it is the same for every other right
						return all
					}
				}
			}
		}
	}
	return all
}

// granted is a rule of a role, and the namespaces in which a ClusterRole has to be bound at least.
type granted struct {
	role   role
	rule   rbacv1.PolicyRule
	listed []string
}

// right checks the verbs of one resource.
func (c *Checker) right(ctx context.Context, of granted, group, resource string) []Finding {
	role, rule := of.role, of.rule
	object, namespace := role.kind+" "+role.name, ""
	files, alternative := clusterRoles, ""
	if len(of.listed) > 0 {
		alternative = ", or bind the ClusterRoles in each of these namespaces as config/optional/namespaces.yaml does" +
			" (with Helm: the value rbac.namespaces)"
	}
	if role.kind == "Role" {
		object, namespace = role.kind+" "+c.Namespace+"/"+role.name, c.Namespace
		files, alternative = roles, ""
	}
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	base, sub, _ := strings.Cut(resource, "/")
	var missing, where []string
	for _, verb := range rule.Verbs {
		for _, name := range names {
			right := authorizationv1.ResourceAttributes{
				Verb:        verb,
				Namespace:   namespace,
				Group:       group,
				Resource:    base,
				Subresource: sub,
				Name:        name,
			}
			lacking, err := c.lacking(ctx, of, right)
			if err != nil {
				return []Finding{unreviewed(object, err)}
			}
			if len(lacking) > 0 {
				missing, where = append(missing, verb), append(where, lacking...)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(where)
	return []Finding{
		{
			Object: object,
			Problem: fmt.Sprintf("does not let %s %s %s in %s", c.Component, strings.Join(slices.Compact(missing), ", "),
				qualified(group, resource), text.Some(slices.Compact(where), maxNamed, ", ")),
			Remedy: c.apply(ctx, files) + alternative,
		},
	}
}

func qualified(group, resource string) string {
	base, sub, divided := strings.Cut(resource, "/")
	if group != "" {
		base += "." + group
	}
	if divided {
		base += "/" + sub
	}
	return base
}

// allowed reports whether the account has a right. Every account may ask for itself.
func (c *Checker) allowed(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	if c.account != "" {
		return c.allowedTo(ctx, what)
	}
	review, err := c.kube.AuthorizationV1().SelfSubjectAccessReviews().
		Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
		}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// allowedTo reports whether the ServiceAccount of the component has a right.
func (c *Checker) allowedTo(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	const all = "system:serviceaccounts"
	review, err := c.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: &what,
			User:               c.account,
			Groups:             []string{all, all + ":" + c.Namespace, "system:authenticated"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

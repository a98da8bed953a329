// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whoever may edit a namespace may write Repositories, whoever may view it may read them: by the roles that config/ adds to
// Kubernetes' own, and not without them.
func TestWhoMayWriteRepositories(t *testing.T) {
	ctx := within(t)
	roles := shared.Kube.RbacV1().ClusterRoles()
	namespace := shared.Cluster.Namespace(t, "team")
	for role, user := range map[string]string{"edit": "editor", "view": "viewer"} {
		_, err := shared.Kube.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	may := func(user, verb string) (bool, error) {
		review, err := shared.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: "pipelinesascode.tekton.dev", Resource: "repositories"},
		}}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	}
	check := func(user, verb string, want bool) {
		t.Helper()
		eventually(ctx, t, fmt.Sprintf("%s may %s Repositories: %v", user, verb, want), func() error {
			if got, err := may(user, verb); err != nil || got != want {
				return fmt.Errorf("%v, %w", got, err)
			}
			return nil
		})
	}
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	for i, verb := range all {
		check("editor", verb, true)
		check("viewer", verb, i < 3)
	}
	for _, verb := range all { // editors get what viewers may, so both roles lack it
		for _, name := range []string{"plumbline-repositories-edit", "plumbline-repositories-view"} {
			change(ctx, t, roles, name, func(role *rbacv1.ClusterRole) {
				for i := range role.Rules {
					role.Rules[i].Verbs = slices.DeleteFunc(role.Rules[i].Verbs, func(v string) bool { return v == verb })
				}
				role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Verbs) == 0 })
			})
		}
		check("editor", verb, false)
		check("viewer", verb, false)
	}
	shared.mend(ctx, t)
}

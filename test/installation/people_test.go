// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A user who may edit a namespace may write Repositories, and a user who may view it may read
// them: config/ adds that to Kubernetes' own roles.
func TestRepositoryRights(t *testing.T) {
	ctx := within(t)
	namespace := shared.Cluster.Namespace(t, "team")
	for role, user := range map[string]string{"edit": "editor", "view": "viewer"} {
		_, err := shared.Kube.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	check := func(user, verb string, want bool) {
		t.Helper()
		eventually(ctx, t, fmt.Sprintf("%s may %s Repositories: %v", user, verb, want), func() error {
			review, err := shared.Kube.AuthorizationV1().SubjectAccessReviews().Create(
				ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: user,
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: namespace, Verb: verb, Group: "pipelinesascode.tekton.dev", Resource: "repositories",
					},
				}}, metav1.CreateOptions{})
			if err != nil || review.Status.Allowed != want {
				return fmt.Errorf("%v, %w", review.Status, err)
			}
			return nil
		})
	}
	for i, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		check("editor", verb, true)
		check("viewer", verb, i < 3)
	}
}

// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// rights returns the rights that Run uses after it has listed everything. Helm deletes the objects
// of a release with the rights of the user who calls it.
func (u *Uninstaller) rights(objects []object, release string) []authorizationv1.ResourceAttributes {
	all := []authorizationv1.ResourceAttributes{{Verb: "list", Resource: "pods", Namespace: u.Namespace}}
	if u.CloseChecks != Leave {
		all = append(all, authorizationv1.ResourceAttributes{
			Verb: "patch", Group: "apps", Resource: "deployments", Namespace: u.Namespace, Name: string(preflight.Receiver),
		})
	}
	if u.CloseChecks == Cancel {
		all = append(all, authorizationv1.ResourceAttributes{
			Verb: "patch", Group: plumbline.GroupName, Resource: "gitevents", Namespace: u.Namespace,
		})
	}
	if release != "" {
		return all
	}
	for _, o := range objects {
		all = append(all, authorizationv1.ResourceAttributes{
			Verb: "delete", Group: o.kind.Group, Resource: o.kind.Resource, Namespace: o.namespace, Name: o.name,
		})
	}
	return all
}

// checkRights returns an error that names the rights that this account lacks.
func (u *Uninstaller) checkRights(ctx context.Context, objects []object, release string) error {
	reviews := u.Cluster.Kube.AuthorizationV1().SelfSubjectAccessReviews()
	var missing []string
	for _, right := range u.rights(objects, release) {
		review, err := reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
		}, metav1.CreateOptions{})
		if err != nil {
			return kube.Failed("reading the rights of this account", err)
		}
		if !review.Status.Allowed {
			missing = append(missing, kube.NameRight(right.Verb, right.Resource, right.Group, right.Namespace))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf(
		"nothing was changed: this account lacks the rights to\n  %s\nask an administrator of the cluster for them",
		strings.Join(slices.Compact(missing), "\n  "),
	)
}

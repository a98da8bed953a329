// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
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

// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
)

// access reports people and groups that have a ClusterRole of Pipelines-as-Code, which is deleted
// with it. The roles admin, edit and view of Kubernetes include Repositories here, too.
func (s *surveyor) access(ctx context.Context, installations []pac.Controller) error {
	err := kube.Pages(metav1.ListOptions{}, func(o metav1.ListOptions) (string, error) {
		list, err := s.cluster.Kube.RbacV1().RoleBindings(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return "", err
		}
		for _, b := range list.Items {
			s.binding(installations, b.RoleRef, b.Subjects, "RoleBinding "+b.Namespace+"/"+b.Name)
		}
		return list.Continue, nil
	})
	if err := s.unlessForbidden("reading RoleBindings", err); err != nil {
		return err
	}
	err = kube.Pages(metav1.ListOptions{}, func(o metav1.ListOptions) (string, error) {
		list, err := s.cluster.Kube.RbacV1().ClusterRoleBindings().List(ctx, o)
		if err != nil {
			return "", err
		}
		for _, b := range list.Items {
			s.binding(installations, b.RoleRef, b.Subjects, "ClusterRoleBinding "+b.Name)
		}
		return list.Continue, nil
	})
	return s.unlessForbidden("reading ClusterRoleBindings", err)
}

func (s *surveyor) binding(all []pac.Controller, role rbacv1.RoleRef, subjects []rbacv1.Subject, object string) {
	name := strings.TrimPrefix(role.Name, "openshift-")
	if role.Kind != "ClusterRole" ||
		!strings.HasPrefix(name, "pipelines-as-code") && !strings.HasPrefix(name, "pipeline-as-code") {
		return
	}
	own := func(subject rbacv1.Subject) bool { // Pipelines-as-Code's accounts
		return subject.Kind == rbacv1.ServiceAccountKind &&
			slices.ContainsFunc(all, func(i pac.Controller) bool { return i.Namespace == subject.Namespace })
	}
	if !slices.ContainsFunc(subjects, func(subject rbacv1.Subject) bool { return !own(subject) }) {
		return
	}
	s.add(Finding{
		Kind:   Differs,
		Topic:  Access,
		Says:   "a binding grants ClusterRole " + role.Name + " of Pipelines-as-Code, which is deleted with it",
		Remedy: "grant ClusterRole plumbline-repositories-edit instead. The roles admin, edit and view include Repositories",
		Page:   "docs/migration.md#look-before-you-move",
	}, "", object)
}

// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// claims returns the RepositoryClaims by their names.
func (m *Migration) claims(ctx context.Context) (map[string]*v1alpha1.RepositoryClaim, error) {
	list, err := m.Cluster.Own.PlumblineV1alpha1().RepositoryClaims(m.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, kube.Failed("listing the RepositoryClaims", err)
	}
	all := map[string]*v1alpha1.RepositoryClaim{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all, nil
}

// claimOf returns the claim of a Repository's URL, nil if there is none, and whether it is the
// Repository's.
func claimOf(
	claims map[string]*v1alpha1.RepositoryClaim, repository *pacv1alpha1.Repository,
) (claim *v1alpha1.RepositoryClaim, own bool) {
	canonical, err := v1alpha1.CanonicalURL(repository.Spec.URL)
	if err != nil {
		return nil, false
	}
	claim = claims[v1alpha1.ClaimName(canonical)]
	if claim == nil || claim.Status.ReleasedAt != nil {
		return nil, false
	}
	owner := claim.Spec.Repository
	return claim, owner.Namespace == repository.Namespace && owner.Name == repository.Name
}

// moved returns what became of a Repository, "" if that is not known yet.
func (n *Namespaces) moved(claims map[string]*v1alpha1.RepositoryClaim, repository *pacv1alpha1.Repository) string {
	claim, own := claimOf(claims, repository)
	if _, err := v1alpha1.CanonicalURL(repository.Spec.URL); err != nil {
		return "is not served: its spec.url is not valid"
	}
	url := repository.Status.GetCondition(pacv1alpha1.RepositoryURL)
	switch {
	case !n.Back && claim == nil && url.IsFalse() && url.Reason == "Claimed": // by one that stays at PaC
		return "is not served: " + url.Message
	case n.Back && own, !n.Back && claim == nil:
		return ""
	case n.Back:
		return "released"
	case !own:
		owner := claim.Spec.Repository
		return fmt.Sprintf("is not served: its URL belongs to Repository %s/%s. Delete one of the two",
			owner.Namespace, owner.Name)
	}
	return "claimed" + problem(repository)
}

// allClaimed returns an error if deliveries for Repositories are still forwarded to PaC, because
// their URLs have no claim.
func allClaimed(claims map[string]*v1alpha1.RepositoryClaim, repositories map[string][]pacv1alpha1.Repository) error {
	var left []string
	for _, all := range repositories {
		for i := range all {
			if (&Namespaces{}).moved(claims, &all[i]) == "" {
				left = append(left, all[i].Namespace+"/"+all[i].Name)
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	return fmt.Errorf("the URLs of %d Repositories are not claimed by Plumbline yet, so Pipelines-as-Code still serves them, "+
		"for example %s: run plumb migrate start, and then plumb migrate namespace --all, which waits for it", len(left), left[0])
}

// problem returns what the conditions of a Repository say is wrong, "" for nothing.
func problem(repository *pacv1alpha1.Repository) string {
	for _, condition := range repository.Status.Conditions {
		if condition.Status == corev1.ConditionFalse && condition.Type != pacv1alpha1.RepositoryReady &&
			condition.Reason != "NamespaceNotServed" { // from before the move
			return fmt.Sprintf(", but %s: %s", condition.Reason, condition.Message)
		}
	}
	return ""
}

// awaitClaims waits until the URLs of the namespaces' Repositories have changed hands, and says
// what became of each.
func (n *Namespaces) awaitClaims(ctx context.Context) error {
	said, left := map[string]bool{}, []string(nil)
	err := n.until(ctx, func(ctx context.Context) (bool, error) {
		if err := n.stillMoved(ctx); err != nil {
			return false, err
		}
		repositories, err := n.repositories(ctx)
		if err != nil {
			return false, err
		}
		claims, err := n.claims(ctx)
		if err != nil {
			return false, err
		}
		left = nil
		for _, name := range n.Names {
			for i := range repositories[name] {
				repository := &repositories[name][i]
				key, became := repository.Namespace+"/"+repository.Name, n.moved(claims, repository)
				switch {
				case became == "":
					left = append(left, key)
				case !said[key]:
					said[key] = true
					n.say("Repository %s %s", key, became)
				}
			}
		}
		return len(left) == 0, nil
	})
	if wait.Interrupted(err) && len(left) > 0 {
		done := map[bool]string{false: "claimed", true: "released"}[n.Back]
		return fmt.Errorf("the URLs of %d Repositories are not %s after %s, for example that of %s: "+
			"see with plumb doctor whether a controller runs, then run the command again", len(left), done, n.Timeout, left[0])
	}
	return err
}

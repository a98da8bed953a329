// SPDX-License-Identifier: Apache-2.0

// Package claim decides whether a namespace may serve the repository that a Git service has at a
// URL.
//
// Names at a Git service are reused: an organization is renamed, and another user registers the old
// name. So the first planned event binds a URL to the service's numeric ids of repository and
// account, which the RepositoryClaim stores. Events of another repository at the same URL are
// ignored until a user who may edit the Repository object confirms it.
//
// If the administrator requires it (url-owners), a namespace must also prove that it may use a URL.
// See docs/adr/0022.
package claim

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	pacclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Checker compares events with the claims of their URLs. It is safe for concurrent use and caches
// nothing itself.
type Checker struct {
	// Cached may be stale: an event that matches it is served, but nothing is denied because of it.
	Cached       listers.RepositoryClaimNamespaceLister
	Claims       plumblineclient.RepositoryClaimInterface
	Repositories pacclient.RepositoriesGetter
}

// Serves returns nil if an event may start runs in its Repository's namespace. The repository's
// ids, which the Git service has confirmed, must be those that the URL is bound to, or become those
// now. The namespace must have the proof that the configuration in ctx requires. An Ignored fault
// says why not, for users who may edit the Repository; any other error means that it is not known
// yet. An event that matches the cache costs no call.
func (k *Checker) Serves(
	ctx context.Context, repository *pacv1alpha1.Repository, event *v1alpha1.GitEventSpec, files Files,
) error {
	url, err := v1alpha1.CanonicalURL(event.Repository.URL)
	if err != nil {
		return fault.Operatorf(reasonInvalidURL, "spec.url of Repository %s/%s: %w",
			repository.Namespace, repository.Name, err)
	}
	seen := event.Project.Identity()
	claim := k.cachedMatch(v1alpha1.ClaimName(url), repository, seen)
	if claim == nil {
		namespace := repository.Namespace
		if claim, repository, err = k.live(ctx, v1alpha1.ClaimName(url), repository); err != nil {
			return neverClaimed(ctx, url, namespace, err)
		}
	}
	next, denied := identify(repository, claim.Status, seen)
	if owners := config.FromContext(ctx).Owners; denied == nil && owners.Asked {
		var listed bool
		listed, denied = prove(ctx, owners, url, repository.Namespace, files)
		if denied != nil && !fault.Is(denied, fault.Ignored) {
			return denied
		}
		if !listed {
			next.Proven = denied == nil
		}
		if next.Proven {
			next.UnprovenSince = nil
		}
	}
	if err := k.write(ctx, claim, next); err != nil {
		return err
	}
	return denied
}

// reasonNotServed is the reason of an event whose namespace was served only when it was recorded.
const reasonNotServed = "NamespaceNotServed"

// neverClaimed turns the wait for a claim into an Ignored fault if the namespace will never get it.
// Either the administrator has listed the URL for other namespaces, or this installation no longer
// serves the namespace.
func neverClaimed(ctx context.Context, url, namespace string, err error) error {
	settings := config.FromContext(ctx)
	if fault.Of(err).Reason != fault.ReasonNotClaimedYet {
		return err
	}
	if settings.Owners.Bar(url, namespace) {
		return fault.Ignoredf(v1alpha1.ReasonNotProven, "%s", NotListed(url))
	}
	if settings.Namespaces.Leave(namespace) {
		return fault.Ignoredf(reasonNotServed,
			"this installation no longer serves namespace %s (serve-namespaces), and its claim of %s has ended", namespace, url)
	}
	return err
}

// cachedMatch returns the cached claim if the event's repository is the one that it is bound to,
// else nil.
func (k *Checker) cachedMatch(
	name string, repository *pacv1alpha1.Repository, seen v1alpha1.ProjectIdentity,
) *v1alpha1.RepositoryClaim {
	claim, err := k.Cached.Get(name)
	if err != nil || !owns(claim, repository) {
		return nil
	}
	next, denied := identify(repository, claim.Status, seen)
	if denied != nil || !equality.Semantic.DeepEqual(next, claim.Status) {
		return nil
	}
	return claim
}

// live reads the claim and the Repository from the API server. It is an error if one is missing or
// they do not belong together.
func (k *Checker) live(
	ctx context.Context, name string, cached *pacv1alpha1.Repository,
) (*v1alpha1.RepositoryClaim, *pacv1alpha1.Repository, error) {
	claim, err := k.Claims.Get(ctx, name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil, nil, fault.Transientf(fault.ReasonNotClaimedYet, "%s has no RepositoryClaim yet", cached.Spec.URL)
	}
	if err != nil {
		return nil, nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading RepositoryClaim %s: %w", name, err))
	}
	repository, err := k.Repositories.Repositories(cached.Namespace).Get(ctx, cached.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil, nil, fault.Transientf(reasonRepositoryVanished,
			"Repository %s/%s was deleted while its event was planned", cached.Namespace, cached.Name)
	}
	if err != nil {
		return nil, nil, fault.FromKube(fault.VerbRead,
			fmt.Errorf("reading Repository %s/%s: %w", cached.Namespace, cached.Name, err))
	}
	if !owns(claim, repository) {
		return nil, nil, fault.Ignoredf(v1alpha1.ReasonNotProven,
			"%s belongs to another Repository now, which serves its events", repository.Spec.URL)
	}
	return claim, repository, nil
}

func owns(claim *v1alpha1.RepositoryClaim, repository *pacv1alpha1.Repository) bool {
	owner := claim.Spec.Repository
	return owner.Namespace == repository.Namespace && owner.Name == repository.Name
}

// write stores the new status. If several writers have read the same claim, one succeeds and the
// others read it again.
func (k *Checker) write(
	ctx context.Context, claim *v1alpha1.RepositoryClaim, next v1alpha1.RepositoryClaimStatus,
) error {
	if equality.Semantic.DeepEqual(claim.Status, next) {
		return nil
	}
	claim = claim.DeepCopy()
	claim.Status = next
	if _, err := k.Claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return fault.FromKube(fault.VerbUpdate, fmt.Errorf("writing the status of RepositoryClaim %s: %w", claim.Name, err))
	}
	return nil
}

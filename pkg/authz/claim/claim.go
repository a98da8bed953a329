// SPDX-License-Identifier: Apache-2.0

// Package claim decides whether what a Git service has at a URL may be served in a Repository's
// namespace.
//
// Names at a Git service change hands: an organization is renamed, and somebody registers the old
// name. So a URL is bound to the service's numbers of repository and account at the first event
// that is planned; the RepositoryClaim keeps them. Events of another repository at the same URL are
// ignored until somebody who may edit the Repository object confirms it.
//
// Where the administrator asks for it (url-owners), a namespace must also prove that it may have a
// URL at all. See docs/adr/0022.
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

// Keeper compares events with the claims of their URLs. Safe for concurrent use; it remembers
// nothing itself.
type Keeper struct {
	// Cached may lag: what it says serves an event that agrees with it, and nothing is denied on
	// its word.
	Cached       listers.RepositoryClaimNamespaceLister
	Claims       plumblineclient.RepositoryClaimInterface
	Repositories pacclient.RepositoriesGetter
}

// Serves returns nil if an event may start something in its Repository's namespace: its repository
// at the Git service, whose numbers the service has vouched for, is the one that the URL is bound
// to or is bound now; and the namespace has the proof that the configuration in ctx asks for. An
// Ignored fault says why not, in a sentence for whoever may edit the Repository. Any other error
// says that it is not known yet. An event that agrees with the cache costs no call.
func (k *Keeper) Serves(
	ctx context.Context,
	repository *pacv1alpha1.Repository,
	event *v1alpha1.GitEventSpec,
	files Files,
) error {
	url, err := v1alpha1.CanonicalURL(event.Repository.URL)
	if err != nil {
		return fault.Operatorf("InvalidURL", "spec.url of Repository %s/%s: %w", repository.Namespace, repository.Name, err)
	}
	seen := event.Project.Identity()
	claim := k.agreeing(v1alpha1.ClaimName(url), repository, seen)
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

// reasonNotServed is of an event whose namespace was served when it was recorded.
const reasonNotServed = "NamespaceNotServed"

// neverClaimed turns the wait for a claim into its end if the namespace will never have it: the
// administrator has listed the URL for others, and it was taken away, or is not claimed again after
// its Repository was gone for a day; or this installation does not serve the namespace.
func neverClaimed(ctx context.Context, url, namespace string, err error) error {
	settings := config.FromContext(ctx)
	if fault.Of(err).Reason != fault.ReasonNotClaimedYet {
		return err
	}
	if settings.Owners.Bar(url, namespace) {
		return fault.Ignoredf(v1alpha1.ReasonNotProven, "%s", NotListed(url))
	}
	if settings.Namespaces.Leave(namespace) {
		return fault.Ignoredf(
			reasonNotServed,
			"this installation does not serve namespace %s any more (serve-namespaces), and its claim of %s has ended",
			namespace,
			url,
		)
	}
	return err
}

// agreeing is the cached claim if the event is of what that is bound to, else nil.
func (k *Keeper) agreeing(
	name string,
	repository *pacv1alpha1.Repository,
	seen v1alpha1.ProjectIdentity,
) *v1alpha1.RepositoryClaim {
	claim, err := k.Cached.Get(name)
	if err != nil || !owns(claim, repository) {
		return nil
	}
	if next, denied := identify(
		repository,
		claim.Status,
		seen,
	); denied != nil ||
		!equality.Semantic.DeepEqual(next, claim.Status) {
		return nil
	}
	return claim
}

// live reads the claim and the Repository as they are now. Both are there and belong together, or
// it is an error.
func (k *Keeper) live(
	ctx context.Context,
	name string,
	cached *pacv1alpha1.Repository,
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
		return nil, nil, fault.Transientf(
			"RepositoryVanished",
			"Repository %s/%s was deleted while its event was planned",
			cached.Namespace,
			cached.Name,
		)
	}
	if err != nil {
		return nil, nil, fault.FromKube(
			fault.VerbRead,
			fmt.Errorf("reading Repository %s/%s: %w", cached.Namespace, cached.Name, err),
		)
	}
	if !owns(claim, repository) {
		return nil, nil, fault.Ignoredf(
			v1alpha1.ReasonNotProven,
			"%s belongs to another Repository now, which serves its events",
			repository.Spec.URL,
		)
	}
	return claim, repository, nil
}

func owns(claim *v1alpha1.RepositoryClaim, repository *pacv1alpha1.Repository) bool {
	owner := claim.Spec.Repository
	return owner.Namespace == repository.Namespace && owner.Name == repository.Name
}

// write records what was learnt. Of several writers who have read the same claim one wins: the
// others read it again.
func (k *Keeper) write(
	ctx context.Context,
	claim *v1alpha1.RepositoryClaim,
	next v1alpha1.RepositoryClaimStatus,
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

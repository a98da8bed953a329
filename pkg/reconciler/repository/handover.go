// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// takeOver deletes the claim of another Repository if the owner is to get the URL, and reports
// whether it did. That happens only if the administrator requires proofs of ownership, in two
// cases. First, the URL is listed for the owner's namespace and not for the other's. Second, the
// URL is in no list, no event has proven it, and the other's time to prove it has passed.
func (r *Reconciler) takeOver(
	ctx context.Context, owner types.NamespacedName, live *v1alpha1.RepositoryClaim,
) (bool, error) {
	owners, holder := r.settings.Load().Owners, ownerOf(live)
	if holder == owner || !owners.Asked || owners.Broken != "" {
		return false, nil
	}
	if listed := owners.Listed(live.Spec.URL); len(listed) > 0 {
		if !slices.Contains(listed, owner.Namespace) || slices.Contains(listed, holder.Namespace) {
			return false, nil
		}
		return true, r.deleteClaim(ctx, live)
	}
	if next, wanted := claim.NextOwner(holder, r.rivals(live.Name)); live.Status.Proven || !wanted || next != owner {
		return false, nil // a change of the claim wakes this key
	}
	now := r.clock.Now()
	if live.Status.UnprovenSince == nil { // also for an old claim: the setting is new, or its proof was just lost
		at := metav1.NewTime(now)
		return false, r.writeUnproven(ctx, live, &at) // the write wakes this key
	}
	if left := live.Status.UnprovenSince.Add(claim.HandoverAfter).Sub(now); left > 0 {
		r.wake(owner, left)
		return false, nil
	}
	return true, r.deleteClaim(ctx, live) // a released one, too: without a proof it is not reserved
}

// move gives a claim to a Repository of the same namespace whose previous owner has given up the
// URL. For example, the Repository was renamed: deleted and created with another name. A live read
// confirms that the previous owner is deleted or names another URL. The claim is changed, not
// recreated, so that no other namespace can get it in between (docs/adr/0053).
func (r *Reconciler) move(
	ctx context.Context, to *pacv1alpha1.Repository, live *v1alpha1.RepositoryClaim,
) (*v1alpha1.RepositoryClaim, error) {
	holder := ownerOf(live)
	if holder.Namespace != to.Namespace || holder == keyOf(to) ||
		live.Status.ReleasedAt == nil && slices.Contains(r.rivals(live.Name), holder) {
		return live, nil
	}
	owner, err := r.readLive(ctx, holder)
	if err != nil {
		return nil, err
	}
	if owner != nil && claimName(owner.Spec.URL) == live.Name {
		return live, nil // a change of that Repository wakes this key through its claim
	}
	claim := live.DeepCopy()
	claim.Spec.Repository.Name, claim.Spec.Repository.UID = to.Name, to.UID
	moved, err := r.client.PlumblineV1alpha1().RepositoryClaims(r.namespace).Update(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("moving RepositoryClaim %s/%s to Repository %s: %w", r.namespace, claim.Name, keyOf(to),
			fault.FromKube(fault.VerbUpdate, err))
	}
	return moved, nil
}

// clearUnproven clears the start of the time to prove a URL, if the claim needs no proof. If it
// needs one again, it has another hour.
func (r *Reconciler) clearUnproven(ctx context.Context, claim *v1alpha1.RepositoryClaim) error {
	owners := r.settings.Load().Owners
	if claim.Status.UnprovenSince == nil ||
		owners.Asked && owners.Broken == "" && len(owners.Listed(claim.Spec.URL)) == 0 {
		return nil
	}
	return r.writeUnproven(ctx, claim, nil)
}

// writeUnproven sets or clears the start of the time to prove a URL.
func (r *Reconciler) writeUnproven(ctx context.Context, live *v1alpha1.RepositoryClaim, at *metav1.Time) error {
	claim := live.DeepCopy()
	claim.Status.UnprovenSince = at
	_, err := r.writeClaim(ctx, claim)
	return err
}

// notListed returns an Invalid fault if the administrator has listed the URL for other namespaces.
func (r *Reconciler) notListed(repository *pacv1alpha1.Repository, canonical string) error {
	if r.settings.Load().Owners.Bar(canonical, repository.Namespace) {
		return fault.Invalidf(v1alpha1.ReasonNotProven, "%s", claim.NotListed(canonical))
	}
	return nil
}

// markOwned says in the condition URL whether the events of a Repository with a claim are served.
func (r *Reconciler) markOwned(repository *pacv1alpha1.Repository, urlClaim *v1alpha1.RepositoryClaim) {
	by := repository.By(r.namespace)
	if denied := claim.Denied(repository, urlClaim, r.settings.Load().Owners); denied != nil {
		by.MarkFalse(pacv1alpha1.RepositoryURL, denied.Reason, denied.Message)
		return
	}
	by.MarkTrue(pacv1alpha1.RepositoryURL, reasonOwned,
		"The events of the URL are served in this namespace."+r.ofWebhook(repository))
}

// ofWebhook says of a repository on GitHub that its own webhook is served and no App, "" for any
// other. It is GitHub if the Repository says so, or the URL.
func (r *Reconciler) ofWebhook(repository *pacv1alpha1.Repository) string {
	service, err := pacv1alpha1.ServiceOf(repository,
		r.cachedRepository(types.NamespacedName{Namespace: r.namespace, Name: r.global}))
	if err != nil || !service.HasWebhook() || !repository.OnGitHub() {
		return ""
	}
	return " The webhook and the token of git_provider serve it: deliveries of the GitHub App for it start nothing."
}

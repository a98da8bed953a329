// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
)

// claimKept is how long a claim outlives its Repository. A Repository that is deleted and recreated
// so keeps its URL: its events and tokens do not go to another namespace.
const claimKept = 24 * time.Hour

// openEventsEvery is how often release checks a claim that stays for the open events of a namespace
// that was left.
const openEventsEvery = 10 * time.Minute

// release gives up the owner's claims of every URL but canonical; "" is all of them. The caller has
// just read live that the owner is deleted or names another URL, so a cache that is behind never
// costs a team its URL.
func (r *Reconciler) release(ctx context.Context, owner types.NamespacedName, canonical string) []error {
	var errs []error
	for _, claim := range r.others(owner, canonical) {
		errs = append(
			errs,
			r.try(owner, backoff.Step{Name: stepRelease, Of: claim.Name},
				func() error { return r.releaseOne(ctx, owner, claim.Name) }),
		)
	}
	return errs
}

// others returns the claims of a Repository in the cache, except for that of its URL.
func (r *Reconciler) others(owner types.NamespacedName, canonical string) []*v1alpha1.RepositoryClaim {
	owned, err := r.claims.ByIndex(byOwner, shard(owner.String()))
	if err != nil {
		return nil // the index exists: wire added it
	}
	var claims []*v1alpha1.RepositoryClaim
	for _, obj := range owned {
		if claim, ok := obj.(*v1alpha1.RepositoryClaim); ok && ownerOf(claim) == owner &&
			claim.Name != v1alpha1.ClaimName(canonical) {
			claims = append(claims, claim)
		}
	}
	return claims
}

// releaseOne marks a claim as released, and deletes it after its time.
func (r *Reconciler) releaseOne(ctx context.Context, owner types.NamespacedName, name string) error {
	live, err := r.readClaim(ctx, name)
	if err != nil {
		return err
	}
	if live == nil || ownerOf(live) != owner {
		return nil // the cache is behind
	}
	now := r.clock.Now()
	if live.Status.ReleasedAt == nil {
		at := metav1.NewTime(now)
		if live, err = r.writeReleased(ctx, live, &at); err != nil {
			return err
		}
	}
	if left := live.Status.ReleasedAt.Add(claimKept).Sub(now); left > 0 {
		return fault.Throttledf(reasonClaimReleased, left, "RepositoryClaim %s/%s is kept for a day after its Repository",
			r.namespace, name)
	}
	if r.settings.Load().Namespaces.Leave(owner.Namespace) &&
		(!r.eventsSynced() || len(r.openEvents(owner.Namespace, owner.Name)) > 0) {
		return fault.Throttledf(reasonClaimReleased, openEventsEvery, "RepositoryClaim %s/%s is kept for open events",
			r.namespace, name)
	}
	return r.deleteClaim(ctx, live)
}

// deleteClaim deletes exactly what was read: a claim that was claimed again meanwhile stays.
func (r *Reconciler) deleteClaim(ctx context.Context, live *v1alpha1.RepositoryClaim) error {
	err := r.client.PlumblineV1alpha1().RepositoryClaims(r.namespace).Delete(ctx, live.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion},
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("deleting RepositoryClaim %s/%s: %w", r.namespace, live.Name, fault.FromKube(fault.VerbDelete, err))
}

// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// claim returns the claim of the URL, which another Repository may own. It creates the claim if
// there is none, and takes it over if the Repository may. The first create wins.
func (r *Reconciler) claim(
	ctx context.Context, repository *pacv1alpha1.Repository, canonical string,
) (*v1alpha1.RepositoryClaim, error) {
	name := v1alpha1.ClaimName(canonical)
	owner := keyOf(repository)
	if cached := r.cachedClaim(name); owned(cached, owner) {
		return cached, nil // a release or deletion meanwhile wakes this key
	}
	live, created, err := r.readOrCreate(ctx, repository, canonical)
	if err != nil {
		return nil, err
	}
	if created {
		return live, nil
	}
	if live, err = r.move(ctx, repository, live); err != nil {
		return nil, err
	}
	taken, err := r.takeOver(ctx, owner, live)
	if err != nil {
		return nil, err
	}
	if taken {
		if live, _, err = r.createClaim(ctx, repository, canonical); err != nil {
			return nil, err
		}
	}
	if ownerOf(live) != owner || live.Status.ReleasedAt == nil {
		return live, nil
	}
	return r.writeReleased(ctx, live, nil)
}

// readOrCreate returns the claim from the API server, and whether this call created it.
func (r *Reconciler) readOrCreate(
	ctx context.Context, repository *pacv1alpha1.Repository, canonical string,
) (claim *v1alpha1.RepositoryClaim, created bool, err error) {
	if name := v1alpha1.ClaimName(canonical); r.cachedClaim(name) != nil {
		if live, err := r.readClaim(ctx, name); live != nil || err != nil {
			return live, false, err
		}
	}
	return r.createClaim(ctx, repository, canonical)
}

func (r *Reconciler) cachedClaim(name string) *v1alpha1.RepositoryClaim {
	obj, exists, err := r.claims.GetByKey(r.namespace + "/" + name)
	if err != nil || !exists {
		return nil
	}
	claim, ok := obj.(*v1alpha1.RepositoryClaim)
	if !ok {
		return nil
	}
	return claim
}

// hasClaim reports whether the cache has an unreleased claim of the owner for a URL.
func (r *Reconciler) hasClaim(owner types.NamespacedName, canonical string) bool {
	return owned(r.cachedClaim(v1alpha1.ClaimName(canonical)), owner)
}

func owned(claim *v1alpha1.RepositoryClaim, owner types.NamespacedName) bool {
	return claim != nil && ownerOf(claim) == owner && claim.Status.ReleasedAt == nil
}

// readClaim reads a claim from the API server; nil if there is none.
func (r *Reconciler) readClaim(ctx context.Context, name string) (*v1alpha1.RepositoryClaim, error) {
	claim, err := r.client.PlumblineV1alpha1().RepositoryClaims(r.namespace).Get(ctx, name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading RepositoryClaim %s/%s: %w", r.namespace, name, fault.FromKube(fault.VerbRead, err))
	}
	return claim, nil
}

// createClaim returns the claim that it created, or the one that was first.
func (r *Reconciler) createClaim(
	ctx context.Context, repository *pacv1alpha1.Repository, canonical string,
) (claim *v1alpha1.RepositoryClaim, created bool, err error) {
	wanted := makeClaim(r.namespace, canonical, repository)
	if refused := r.servedByPipelinesAsCode(repository, wanted); refused != nil {
		if claim, err = r.readClaim(ctx, wanted.Name); claim == nil && err == nil { // the cache may be behind
			err = refused
		}
		return claim, false, err
	}
	claim, err = r.client.PlumblineV1alpha1().RepositoryClaims(r.namespace).Create(ctx, wanted, metav1.CreateOptions{})
	if err == nil {
		return claim, true, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		// The text of a claim is Plumbline's. If a policy or a quota refuses it, an operator has to
		// act.
		refused := fault.FromKube(fault.VerbCreate, err)
		if refused.Class == fault.Invalid {
			refused.Class = fault.Operator
		}
		return nil, false, fmt.Errorf("creating RepositoryClaim %s/%s: %w", r.namespace, wanted.Name, refused)
	}
	first, err := r.readClaim(ctx, wanted.Name)
	if err == nil && first == nil {
		err = fault.Transientf(reasonClaimVanished, "RepositoryClaim %s/%s was deleted while it was being claimed",
			r.namespace, wanted.Name)
	}
	return first, false, err
}

func makeClaim(namespace, canonical string, repository *pacv1alpha1.Repository) *v1alpha1.RepositoryClaim {
	return &v1alpha1.RepositoryClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.ClaimName(canonical)},
		Spec: v1alpha1.RepositoryClaimSpec{
			URL: canonical,
			Repository: v1alpha1.ClaimOwner{
				Namespace: repository.Namespace, Name: repository.Name, UID: repository.UID,
			},
		},
	}
}

// writeReleased sets or clears the time of the release of a claim that was read in this reconcile.
func (r *Reconciler) writeReleased(
	ctx context.Context, live *v1alpha1.RepositoryClaim, at *metav1.Time,
) (*v1alpha1.RepositoryClaim, error) {
	claim := live.DeepCopy()
	claim.Status.ReleasedAt = at
	return r.writeClaim(ctx, claim)
}

// writeClaim writes the status of a claim that was read in this reconcile.
func (r *Reconciler) writeClaim(
	ctx context.Context, claim *v1alpha1.RepositoryClaim,
) (*v1alpha1.RepositoryClaim, error) {
	written, err := r.client.PlumblineV1alpha1().RepositoryClaims(r.namespace).
		UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("writing the status of RepositoryClaim %s/%s: %w",
			r.namespace, claim.Name, fault.FromKube(fault.VerbUpdate, err))
	}
	return written, nil
}

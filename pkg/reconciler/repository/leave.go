// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
)

// reasonNotServed is the reason of a Repository whose namespace this installation served earlier.
const reasonNotServed = "NamespaceNotServed"

// leave gives up a Repository whose namespace is not served any more. Events that are recorded
// still run: their runs get slots. After that it removes everything of this installation from the
// status. It does not touch a Repository that was never served.
//
// It writes the status before it releases the claims: the claims show that there is something to
// remove.
func (r *Reconciler) leave(ctx context.Context, repository *pacv1alpha1.Repository) []error {
	before, owner := repository.Status.DeepCopy(), keyOf(repository)
	errs := r.finishSlots(ctx, repository)
	claimed, err := r.claimed(ctx, owner)
	if err != nil {
		return append(errs, err)
	}
	repository.By(r.namespace).Withdraw(reasonNotServed, r.notServed(repository.Namespace), claimed)
	if err := r.writeLeft(ctx, repository, before); err != nil {
		return append(errs, err)
	}
	return append(errs, r.release(ctx, owner, "")...)
}

// wait gives slots to recorded events while serve-namespaces cannot be read. A valid setting wakes
// this key for everything else.
func (r *Reconciler) wait(ctx context.Context, repository *pacv1alpha1.Repository) []error {
	before := repository.Status.DeepCopy()
	errs := r.finishSlots(ctx, repository)
	return append(errs, r.writeLeft(ctx, repository, before))
}

// finishSlots updates the slots, and removes a queue without any.
func (r *Reconciler) finishSlots(ctx context.Context, repository *pacv1alpha1.Repository) []error {
	errs := r.admit(ctx, repository)
	if queue := repository.Status.Queue(r.namespace); queue != nil && len(queue.Slots)+queue.Queued == 0 {
		repository.Status.SetQueue(r.namespace, nil)
	}
	return errs
}

func (r *Reconciler) writeLeft(
	ctx context.Context, repository *pacv1alpha1.Repository, before *pacv1alpha1.RepositoryStatus,
) error {
	if equality.Semantic.DeepEqual(before, &repository.Status) {
		return nil
	}
	step := backoff.Step{Name: stepStatus, Version: reasonNotServed}
	return r.try(keyOf(repository), step, func() error { return r.writeStatus(ctx, repository, before) })
}

// claimed reports whether a Repository has a claim that this process has not begun to release.
// Before a release this installation has removed its conditions, so later ones are of another
// installation. The cache may be behind, so the claim is read live.
func (r *Reconciler) claimed(ctx context.Context, owner types.NamespacedName) (bool, error) {
	for _, cached := range r.others(owner, "") {
		step := backoff.Step{Name: stepRelease, Of: cached.Name}
		if cached.Status.ReleasedAt != nil || r.retries.Failing(owner.String(), step, r.clock.Now()) > 0 {
			continue
		}
		live, err := r.readClaim(ctx, cached.Name)
		if err != nil {
			return false, err
		}
		if live != nil && ownerOf(live) == owner && live.Status.ReleasedAt == nil {
			return true, nil
		}
	}
	return false, nil
}

func (r *Reconciler) notServed(namespace string) string {
	if r.settings.Load().PipelinesAsCode.Runs() {
		return fmt.Sprintf("Pipelines-as-Code serves namespace %s: the installation in namespace %s forwards its deliveries.",
			namespace, r.namespace)
	}
	return fmt.Sprintf(
		"The installation in namespace %s does not serve namespace %s any more, and no other one has taken over yet. An administrator adds it to serve-namespaces in "+
			"the ConfigMap of the installation that is to serve it.",
		r.namespace,
		namespace,
	)
}

// servedByPipelinesAsCode returns an error if Pipelines-as-Code serves another Repository with the
// URL of a new claim, or has served it until its namespace moved a moment ago: it is the older one.
// Such a Repository has no claim that would protect its URL. Without this error a user of a served
// namespace would get the team's deliveries, and tokens for its code.
func (r *Reconciler) servedByPipelinesAsCode(
	repository *pacv1alpha1.Repository, wanted *v1alpha1.RepositoryClaim,
) error {
	settings := r.settings.Load()
	if !settings.PipelinesAsCode.Runs() {
		return nil
	}
	for _, rival := range rivals(r.repositories)(wanted.Name) {
		other := r.cachedRepository(rival)
		switch {
		case other == nil, settings.Owners.Bar(wanted.Spec.URL, rival.Namespace):
		case !r.serves(rival.Namespace):
			return fault.Operatorf(reasonClaimed, "%s belongs to Repository %s, whose namespace Pipelines-as-Code serves. "+
				"Delete one of the two Repositories, or move that namespace as well.", wanted.Spec.URL, rival)
		case !settings.Owners.Asked && other.CreationTimestamp.Before(&repository.CreationTimestamp): // else proofs decide
			return fault.Operatorf(reasonClaimed, "%s belongs to Repository %s, which is older. "+
				"Delete one of the two Repositories.", wanted.Spec.URL, rival)
		}
	}
	return nil
}

func (r *Reconciler) serves(namespace string) bool {
	return r.settings.Load().Namespaces.Serve(namespace)
}

// thatAreServed leaves out the Repositories of namespaces that another installation serves.
func (r *Reconciler) thatAreServed(
	rivals func(claim string) []types.NamespacedName,
) func(claim string) []types.NamespacedName {
	return func(claim string) []types.NamespacedName {
		return slices.DeleteFunc(rivals(claim), func(rival types.NamespacedName) bool { return !r.serves(rival.Namespace) })
	}
}

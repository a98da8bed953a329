// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/retry"
)

// reasonNotServed is of a Repository whose namespace this installation served earlier.
const reasonNotServed = "NamespaceNotServed"

// leave gives up a Repository whose namespace is not served any more. Events that are recorded end as if it still were:
// their runs get slots. Then nothing of this installation is left in the status. One that was never served is not touched.
//
// The status is written before the claims are released: while there is a claim it is known that there is something to take back.
func (r *Reconciler) leave(ctx context.Context, repository *pacv1alpha1.Repository) []error {
	before := repository.Status.DeepCopy()
	owner := keyOf(repository)
	errs := r.admit(ctx, repository)
	if queue := repository.Status.Queue(r.namespace); queue != nil && len(queue.Slots)+queue.Queued == 0 {
		repository.Status.SetQueue(r.namespace, nil)
	}
	if r.speaks(repository) {
		repository.By(r.namespace).Withdraw(reasonNotServed, r.notServed(repository.Namespace))
	}
	if !equality.Semantic.DeepEqual(before, &repository.Status) {
		step := retry.Step{Name: stepStatus, Version: reasonNotServed}
		if err := r.try(owner, step, func() error { return r.writeStatus(ctx, repository, before) }); err != nil {
			return append(errs, err)
		}
	}
	return append(errs, r.release(ctx, owner, "")...)
}

// speaks reports whether a status may say something in the name of this installation: it has a claim, or has signed a condition.
func (r *Reconciler) speaks(repository *pacv1alpha1.Repository) bool {
	claimed := func(c *v1alpha1.RepositoryClaim) bool { return c.Status.ReleasedAt == nil }
	return slices.ContainsFunc(r.others(keyOf(repository), ""), claimed) ||
		slices.ContainsFunc(repository.Status.Conditions, func(c apis.Condition) bool { return repository.By(r.namespace).Signed(c.Type) })
}

func (r *Reconciler) notServed(namespace string) string {
	return fmt.Sprintf("The installation in namespace %s does not serve namespace %s any more, and no other one has taken over yet. An administrator adds it to serve-namespaces in "+
		"ConfigMap %s of the installation that is to serve it.", r.namespace, namespace, config.Name)
}

func (r *Reconciler) serves(namespace string) bool {
	return r.settings.Load().Namespaces.Serve(namespace)
}

// thatAreServed leaves out the Repositories of other namespaces: they are another installation's rivals.
func (r *Reconciler) thatAreServed(rivals func(claim string) []types.NamespacedName) func(claim string) []types.NamespacedName {
	return func(claim string) []types.NamespacedName {
		return slices.DeleteFunc(rivals(claim), func(rival types.NamespacedName) bool { return !r.serves(rival.Namespace) })
	}
}

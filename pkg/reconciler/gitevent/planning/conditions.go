// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/logging"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	pacclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// conditions writes what events learn from a Git service about Repositories.
type conditions struct {
	repositories pacclient.RepositoriesGetter
	// namespace is Plumbline's own.
	namespace string
}

// update changes one condition of a Repository with mark, which reports whether it has. No event
// waits for that. A failed write is logged, and the next event that learns it writes it.
func (c conditions) update(
	ctx context.Context, repository *pacv1alpha1.Repository, condition apis.ConditionType,
	mark func(live *pacv1alpha1.Repository) (changed bool),
) (written bool) {
	written, err := c.write(ctx, repository, condition, mark)
	if fault.Is(err, fault.Conflict) {
		written, err = c.write(ctx, repository, condition, mark)
	}
	if err != nil {
		logging.FromContext(ctx).Warnw("condition "+string(condition)+" not written",
			"repository", repository.Namespace+"/"+repository.Name, "error", err)
	}
	return written
}

// write reads the Repository live, because its settings may have changed.
func (c conditions) write(
	ctx context.Context, repository *pacv1alpha1.Repository, condition apis.ConditionType,
	mark func(live *pacv1alpha1.Repository) (changed bool),
) (written bool, err error) {
	all := c.repositories.Repositories(repository.Namespace)
	live, err := all.Get(ctx, repository.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return false, nil
	}
	if err != nil {
		return false, fault.FromKube(fault.VerbRead, err)
	}
	if live.By(c.namespace).MustLeave(condition) || live.Generation != repository.Generation || !mark(live) {
		return false, nil
	}
	if _, err := all.UpdateStatus(ctx, live, metav1.UpdateOptions{}); err != nil {
		return false, fault.FromKube(fault.VerbUpdate,
			fmt.Errorf("writing the status of Repository %s/%s: %w", live.Namespace, live.Name, err))
	}
	return true, nil
}

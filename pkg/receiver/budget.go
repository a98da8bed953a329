// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
)

// isBudget reports whether a delivery was not recorded because a budget is used up.
func isBudget(err error) bool {
	f := fault.Of(err)
	return f != nil && budgetScope(f.Reason) != ""
}

// admit counts an event that is about to be created, with so many bytes of payload in etcd, and has
// the event say so. A budget that is used up is a Throttled fault with the budget's reason.
func (r *Recorder) admit(event *v1alpha1.GitEvent, bytes int64) error {
	repository := types.NamespacedName{Namespace: event.Spec.Repository.Namespace, Name: event.Spec.Repository.Name}
	quota.Annotate(event, repository, bytes)
	use := quota.Use{Repository: repository, Bytes: bytes}
	if event.Spec.PullRequest != nil {
		use.Subject = event.Spec.Subject()
	}
	scope, ok := r.Budget.Admit(event.Name, use)
	if ok {
		return nil
	}
	return fault.Throttledf(
		scope.Reason(),
		budgetRetry,
		"the open events of %s have used up %s",
		scope,
		r.Budget.Limits(scope),
	)
}

// unrecorded answers what Record refuses. Whoever sends learns whose budget is used up, and nothing
// of other tenants.
func unrecorded(err error) answer {
	const again = "see the conditions of the Repository, and send the delivery again when events have ended"
	switch fault.Of(err).Reason {
	case quota.ReasonPull:
		return unavailable("the open events of this pull request have used up their budget: "+
			"send the delivery again when events have ended", err)
	case quota.ReasonRepository:
		return unavailable("the open events of this Repository have used up their budget: "+again, err)
	case quota.ReasonNamespace:
		return unavailable("the open events of the Repository's namespace have used up their budget: "+again, err)
	case fairness.ReasonRate:
		return unavailable(
			"Repositories of this namespace have sent many large deliveries in a short time: send the delivery again in a minute",
			err,
		)
	case quota.ReasonTotal:
		return unavailable("the open events of this installation have used up their budget: "+again, err)
	}
	return unavailable("the delivery could not be recorded", err)
}

// budgetScope is the word of a metric for the reason of a budget that is used up, empty for other
// reasons.
func budgetScope(reason string) string {
	return map[string]string{
		quota.ReasonPull: "pull_request", quota.ReasonRepository: "repository", quota.ReasonNamespace: "namespace",
		quota.ReasonTotal: "total", fairness.ReasonRate: "rate",
	}[reason]
}

// uncontended repeats a create while several of them contend for the usage of a ResourceQuota: API
// servers count it by an update that may conflict, and answer 409 when they have lost it some
// times.
func uncontended(create func() error) (err error) {
	for range maxQuotaRaces {
		if err = create(); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

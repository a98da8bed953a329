// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
)

// admit counts an event that is about to be created, with so many bytes of payload in etcd, and
// annotates the event with that. If a quota is exhausted, it returns a Throttled fault with the
// quota's reason.
func (r *Recorder) admit(event *v1alpha1.GitEvent, bytes int64) error {
	repository := types.NamespacedName{Namespace: event.Spec.Repository.Namespace, Name: event.Spec.Repository.Name}
	quota.Annotate(event, repository, bytes)
	use := quota.Use{Repository: repository, Bytes: bytes}
	if event.Spec.PullRequest != nil {
		use.Subject = event.Spec.Subject()
	}
	scope, ok := r.Quota.Admit(event.Name, use)
	if ok {
		return nil
	}
	return fault.Throttledf(scope.Reason(), quotaRetry, "the unsettled events of %s have exhausted their quota of %s",
		scope, r.Quota.Limits(scope))
}

// QuotaScope returns the metric label for the reason of an exhausted quota or rate, empty for other
// reasons.
func QuotaScope(reason string) string {
	return map[string]string{
		quota.ReasonPull: "pull_request", quota.ReasonRepository: "repository", quota.ReasonNamespace: "namespace",
		quota.ReasonTotal: "total", fairness.ReasonRate: "rate",
	}[reason]
}

// retryQuotaConflicts repeats a create while several creates contend for the usage of a
// ResourceQuota. API servers count it with an update that may conflict, and answer 409 when that
// has failed some times.
func retryQuotaConflicts(create func() error) (err error) {
	for range maxQuotaRaces {
		if err = create(); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

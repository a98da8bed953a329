// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"encoding/base64"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
)

// budgetRetry is when an event that waits for a budget is requeued. That costs no call.
const budgetRetry = time.Minute

// count adds the size of a plan that is about to be stored to the budgets of unsettled events. It
// writes the event's annotations before anything is stored. So a process that is killed meanwhile
// leaves too much counted and never too little. A plan is counted once, by its digest. Another plan
// in its place is counted as well, because the first one is still stored.
//
// Manifests in the status, and as many bytes of secret values, are not counted: the number of
// unsettled events has a budget of its own.
func (p *StoredPlan) count(ctx context.Context, digest string, bytes int64, secrets map[string]string) error {
	values := int64(0)
	for marker, value := range secrets {
		values += int64(len(marker) + base64.StdEncoding.EncodedLen(len(value)))
	}
	if bytes == 0 && values < v1alpha1.MaxManifestBytes || p.event.Annotations[plumbline.PlanDigestAnnotation] == digest {
		return nil
	}
	before := quota.Read(p.event)
	after := before
	after.Bytes, after.Plan = before.Bytes+bytes+values, before.Plan+bytes+values
	if err := p.withinBudget(after); err != nil {
		return err
	}
	annotations := after.Annotations()
	annotations[plumbline.PlanDigestAnnotation] = digest
	err := p.patch(ctx, "counting the plan of", map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		p.Budget.Unplanned(p.event.Name, before)
	}
	return err
}

// OverBudget reports whether a reason is that of an event whose plan waits for a budget.
func OverBudget(reason string) bool {
	return reason == quota.ReasonRepository || reason == quota.ReasonNamespace || reason == quota.ReasonTotal
}

// WithinBudget returns an error while the event still has to wait for a budget.
func (p *StoredPlan) WithinBudget() error { return p.withinBudget(quota.Read(p.event)) }

// withinBudget counts what the event uses, unless a budget is exhausted.
func (p *StoredPlan) withinBudget(use quota.Use) error {
	use.Repository = types.NamespacedName{Namespace: p.event.Spec.Repository.Namespace, Name: p.event.Spec.Repository.Name}
	scope, ok := p.Budget.Plan(p.event.Name, use)
	if ok {
		return nil
	}
	return fault.Throttledf(
		scope.Reason(), budgetRetry,
		"the payloads and plans of the unsettled events of %s have reached their limit of %d MiB: this event is planned when others have settled",
		scope, p.Budget.Limits(scope).Bytes>>20,
	)
}

// SetSubject stores the subject of the event (GitEventSpec.Subject; "" is none) if its delivery
// named another one.
func (p *StoredPlan) SetSubject(ctx context.Context, subject string) error {
	if p.event.Labels[plumbline.SubjectLabel] == subject {
		return nil
	}
	return p.patch(ctx, "labelling",
		map[string]any{"metadata": map[string]any{"labels": map[string]string{plumbline.SubjectLabel: subject}}})
}

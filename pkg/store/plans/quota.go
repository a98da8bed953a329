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

// budgetRetry is how soon an event that waits for room looks again. It asks nobody but this process
// for that.
const budgetRetry = time.Minute

// count has what is about to be stored for a plan counted in the budgets of open events: in the
// event's annotations, before it is stored, so that a process that is killed meanwhile leaves too
// much counted and never too little. The same plan, by its digest, is counted once; another one
// that was planned in its place, too, because what was stored of the first is still there.
//
// What a status holds of manifests, and as many bytes of secret values, every event may have: the
// number of open events has a budget of its own.
func (p *Plan) count(ctx context.Context, digest string, bytes int64, secrets map[string]string) error {
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
	if err := p.room(after); err != nil {
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

// NoRoom reports whether a reason is that of an event whose plan has no room.
func OverBudget(reason string) bool {
	return reason == quota.ReasonRepository || reason == quota.ReasonNamespace || reason == quota.ReasonTotal
}

// HasRoom reports whether open events have room for the plan of one that has waited for that.
func (p *Plan) HasRoom() error { return p.room(quota.Read(p.event)) }

// room counts what the event uses, if there is room.
func (p *Plan) room(use quota.Use) error {
	use.Repository = types.NamespacedName{Namespace: p.event.Spec.Repository.Namespace, Name: p.event.Spec.Repository.Name}
	scope, ok := p.Budget.Plan(p.event.Name, use)
	if ok {
		return nil
	}
	return fault.Throttledf(
		scope.Reason(),
		budgetRetry,
		"the payloads and plans of the open events of %s have used up their %d MiB: this event is planned when others have ended",
		scope,
		p.Budget.Limits(scope).Bytes>>20,
	)
}

// About writes down which subject the event is of, if that is another one than its delivery told
// (GitEventSpec.Subject); "" is none.
func (p *Plan) About(ctx context.Context, subject string) error {
	if p.event.Labels[plumbline.SubjectLabel] == subject {
		return nil
	}
	return p.patch(
		ctx,
		"labelling",
		map[string]any{"metadata": map[string]any{"labels": map[string]string{plumbline.SubjectLabel: subject}}},
	)
}

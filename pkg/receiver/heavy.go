// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
)

// decode reads a verified delivery.
func (d *delivery) decode() (spec *v1alpha1.GitEventSpec, err error) {
	fairness.Worked(d.body, func() { spec, err = d.provider.Webhook.Decode(d.header, d.body) })
	return spec, err
}

// beyondRate refuses a body that its namespace's rate would refuse in the end, before it is
// decoded. So many bytes have little to do with the many deliveries of an App that nobody acts on:
// they may cost the look-up of a Repository.
func (h *Handler) beyondRate(ctx context.Context, d *delivery, canonical string) *answer {
	if len(d.body) <= fairness.SurelyLarge || canonical == "" {
		return nil
	}
	repository, err := h.Lookup.Find(ctx, canonical)
	if err != nil {
		return nil // it is looked up again, and answered, if somebody acts on such events
	}
	if err := h.Recorder.Affords(repository.Namespace, d.origin.Push, len(d.body)); err != nil {
		a := unrecorded(err)
		return &a
	}
	return nil
}

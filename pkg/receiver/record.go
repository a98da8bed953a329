// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
)

// record is the last step: it has the delivery recorded, within its namespace's limits. It calls
// release, which releases the body's slot, when the delivery has to wait.
func (h *Handler) record(ctx context.Context, d *owned, release func()) *answer {
	return h.recordEvent(ctx, d.Spec(), d.Body(), d.repository, release)
}

// recordEvent has an event of a Repository recorded.
func (h *Handler) recordEvent(
	ctx context.Context, spec *v1alpha1.GitEventSpec, body []byte, repository *pacv1alpha1.Repository, release func(),
) *answer {
	spec.Repository = v1alpha1.RepositoryReference{
		Namespace: repository.Namespace, Name: repository.Name, UID: repository.UID, URL: repository.Spec.URL,
	}
	small, waited := len(body) <= smallBodyBytes, false
	if small { // a large body would keep its slot from others; the rate of its namespace admits few of them
		waits := func() { waited = true; release() }
		defer h.recording.Acquire(ctx, fairness.SlotKeyOf(spec, body), len(body), waits)()
	}
	leave, err := h.inFlight.Acquire(repository.Namespace)
	if err != nil && small {
		release()
		leave, err = h.inFlight.Wait(ctx, repository.Namespace, waited)
	}
	if err != nil {
		return unavailable("too many deliveries for this Repository's namespace at once: send the delivery again in a moment",
			err)
	}
	defer leave()
	name, created, err := h.Recorder.Record(ctx, spec, body)
	if err != nil {
		return unrecorded(err)
	}
	if !created {
		return duplicate(name)
	}
	return recorded(name)
}

// unrecorded answers a delivery that the recorder refuses. The sender learns whose budget is
// exhausted, and nothing of other tenants.
func unrecorded(err error) *answer {
	const again = " have exhausted their budget: see the conditions of the Repository, " +
		"and send the delivery again when events have settled"
	switch fault.Of(err).Reason {
	case quota.ReasonPull:
		return unavailable("the unsettled events of this pull request have exhausted their budget: "+
			"send the delivery again when events have settled", err)
	case quota.ReasonRepository:
		return unavailable("the unsettled events of this Repository"+again, err)
	case quota.ReasonNamespace:
		return unavailable("the unsettled events of the Repository's namespace"+again, err)
	case quota.ReasonTotal:
		return unavailable("the unsettled events of this installation"+again, err)
	case fairness.ReasonRate:
		return unavailable(
			"Repositories of this namespace have received many large deliveries in a short time: "+
				"send the delivery again in a minute",
			err,
		)
	}
	return unavailable("the delivery could not be recorded: send it again later; the log of Plumbline's receiver says why",
		err)
}

// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// verdict says what an existing GitEvent means for a delivery that would have its name.
type verdict int

const (
	// alreadyRecorded: it is the record of this delivery.
	alreadyRecorded verdict = iota
	// processAgain: it is the record of this delivery, ended without runs, and may end otherwise now.
	processAgain
	// foreign: it is the record of something else.
	foreign
)

// judge compares an existing GitEvent with a delivery (architecture, "Redelivery").
//
// The delivery is the same when service, delivery key and body are: what differs between honest copies (ReceivedAt, and
// the Repository when its URL was claimed anew in between) does not count. It is processed again when the record is
// settled, no run of it was created, and what stopped it was not the pushed content: Refused (namespace or Repository gone, parked)
// and PendingApproval (access can be granted). Ignored comes from the pushed files, which a SHA fixes, so it stays; and a
// commit that was superseded and is pushed again comes as another delivery.
func judge(existing *v1alpha1.GitEvent, spec *v1alpha1.GitEventSpec) verdict {
	have := &existing.Spec
	if have.Payload.Digest != spec.Payload.Digest || have.Provider != spec.Provider || have.Host != spec.Host || have.DeliveryKey != spec.DeliveryKey {
		return foreign
	}
	created := slices.ContainsFunc(existing.Status.Runs, func(run v1alpha1.Run) bool { return run.UID != "" })
	if !existing.Settled() || created {
		return alreadyRecorded
	}
	switch existing.Status.Disposition {
	case v1alpha1.DispositionRefused, v1alpha1.DispositionPending:
		return processAgain
	case v1alpha1.DispositionIgnored, v1alpha1.DispositionSkipped, v1alpha1.DispositionSuperseded, v1alpha1.DispositionRuns:
		return alreadyRecorded
	}
	return alreadyRecorded // a disposition of a newer version: it knows, we do not
}

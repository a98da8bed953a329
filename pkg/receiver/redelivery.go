// SPDX-License-Identifier: Apache-2.0

package receiver

import "github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"

// verdict says what an existing GitEvent means for a delivery that would have its name.
type verdict int

const (
	// alreadyRecorded: it is the record of this delivery.
	alreadyRecorded verdict = iota
	// processAgain: it is the record of this delivery, ended without runs, and may end otherwise
	// now.
	processAgain
	// foreign: it is the record of something else.
	foreign
)

// judge compares an existing GitEvent with a delivery (architecture, "Redelivery").
//
// The delivery is the same when service, body and, unless the body alone tells, delivery key are:
// what differs between honest copies (ReceivedAt, and the Repository when its URL was claimed anew
// in between) does not count. What GitLab sends again under a key has no e-mail addresses in its
// body any more, so there it is the key and what happened.
func judge(existing *v1alpha1.GitEvent, spec *v1alpha1.GitEventSpec) verdict {
	have := &existing.Spec
	if have.Provider != spec.Provider || have.Host != spec.Host {
		return foreign
	}
	if spec.Body == nil && have.DeliveryKey != spec.DeliveryKey {
		return foreign
	}
	if have.Payload.Digest != spec.Payload.Digest && (spec.Body != nil || have.Happening() != spec.Happening()) {
		return foreign
	}
	if existing.MayRunAgain() {
		return processAgain
	}
	return alreadyRecorded
}

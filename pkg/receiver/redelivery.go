// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
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
// The delivery is the same when service, body and, unless the body alone tells, delivery key are: what differs between honest
// copies (ReceivedAt, and the Repository when its URL was claimed anew in between) does not count.
func judge(existing *v1alpha1.GitEvent, spec *v1alpha1.GitEventSpec) verdict {
	have := &existing.Spec
	if have.Payload.Digest != spec.Payload.Digest || have.Provider != spec.Provider || have.Host != spec.Host {
		return foreign
	}
	if spec.Body == nil && have.DeliveryKey != spec.DeliveryKey {
		return foreign
	}
	if existing.MayRunAgain() {
		return processAgain
	}
	return alreadyRecorded
}

// firstName is the name of the first record of a delivery.
//
// The version before named every event by the delivery's key. Its records are looked for, at two reads, for events that
// happened before the last process of that version can have ended. This process has started after that, or beside it, so
// that a later event has no such record.
func (r *Recorder) firstName(ctx context.Context, spec *v1alpha1.GitEventSpec) (string, error) {
	name, former := spec.EventName(), spec.FormerEventName()
	if spec.Body == nil || !spec.Body.At.Time.Before(r.Started.Add(rolloutTime)) {
		return name, nil
	}
	_, err := r.get(ctx, former)
	if err == nil {
		return former, nil
	}
	if !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading GitEvent %s: %w", former, fault.FromKube(fault.VerbRead, err))
	}
	if _, buried, err := r.remembered(ctx, former, spec); buried || err != nil {
		return former, err
	}
	return name, nil
}

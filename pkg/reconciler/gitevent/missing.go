// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/blob"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// reasonPayloadMissing ends what needs an EventPayload that does not exist any more: somebody deleted it, and nothing
// brings it back. The delivery may be sent again, and is then processed anew.
const reasonPayloadMissing = "PayloadMissing"

// storedBlob reads a blob of the event. One that is gone for certain is a fault with reason PayloadMissing.
func (w *work) storedBlob(ctx context.Context, ref v1alpha1.BlobReference) ([]byte, error) {
	data, err := blob.Read(ctx, w.r.payloads, ref)
	if fault.Gone(err) {
		return nil, fault.Operatorf(reasonPayloadMissing, "the EventPayloads %s were deleted: let the Git service send the event again", ref.Name)
	}
	return data, err
}

// unlessMissing ends the planning of an event whose payload is gone; other errors stay what they are.
func (w *work) unlessMissing(ctx context.Context, err error) error {
	f := fault.Of(err)
	if f == nil || f.Reason != reasonPayloadMissing {
		return err
	}
	w.tell(f.Reason, f.Message)
	return w.abandon(ctx, v1alpha1.DispositionRefused, f.Reason, f.Message)
}

// SPDX-License-Identifier: Apache-2.0

package kept

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/blob"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// ReasonPayloadMissing ends what needs an EventPayload that does not exist any more: somebody deleted it, and nothing
// brings it back. The delivery may be sent again, and is then processed anew.
const ReasonPayloadMissing = "PayloadMissing"

// Blob reads a blob of the event. One that is gone for certain is a fault with reason PayloadMissing.
func (p *Plan) Blob(ctx context.Context, ref v1alpha1.BlobReference) ([]byte, error) {
	data, err := blob.Read(ctx, p.payloads, ref)
	if fault.Gone(err) {
		return nil, fault.Operatorf(ReasonPayloadMissing, "the EventPayloads %s were deleted: let the Git service send the event again", ref.Name)
	}
	return data, err
}

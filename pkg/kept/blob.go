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

// perByte is what a blob takes for each of its bytes: compressed, as it is, and decoded.
const perByte = 3

// Blob reads a blob of the event, and holds the memory for it. One that is gone for certain is a fault with reason PayloadMissing.
func (p *Plan) Blob(ctx context.Context, ref v1alpha1.BlobReference) ([]byte, error) {
	if err := p.Hold(ref.Name, perByte*int(ref.Size)); err != nil {
		return nil, err
	}
	data, err := blob.Read(ctx, p.payloads, ref)
	if fault.Gone(err) {
		return nil, fault.Operatorf(ReasonPayloadMissing, "the EventPayloads %s were deleted: let the Git service send the event again", ref.Name)
	}
	return data, err
}

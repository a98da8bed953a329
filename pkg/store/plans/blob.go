// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// ReasonPayloadMissing ends what needs a payload or a plan that does not exist any more: somebody
// deleted it, and nothing brings it back. The delivery may be sent again, and is then processed
// anew.
const ReasonPayloadMissing = "PayloadMissing"

// perByte is what a blob takes for each of its bytes: compressed, as it is, and decoded.
const perByte = 3

// Payload reads the body of the delivery, and holds the memory for it. One that is gone for certain
// is a fault with reason PayloadMissing. The watch of events leaves it out: it is read live unless
// the event was received a moment ago.
func (p *Plan) Payload(ctx context.Context) ([]byte, error) {
	ref := p.event.Spec.Payload
	if ref.Chunks > 0 {
		return p.blob(ctx, ref)
	}
	if err := p.Hold("payload", perByte*int(ref.Size)); err != nil {
		return nil, err
	}
	if len(p.event.Payload) > 0 {
		return blob.Unpack(p.event.Payload, ref)
	}
	live, err := p.Events.Get(ctx, p.event.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading the payload in GitEvent %s: %w", p.event.Name, err))
	}
	if len(live.Payload) == 0 {
		return nil, fault.Operatorf(
			ReasonPayloadMissing,
			"the payload of GitEvent %s was removed: let the Git service send the event again",
			p.event.Name,
		)
	}
	return blob.Unpack(live.Payload, ref)
}

// blob reads a blob of the event, and holds the memory for it. One that is gone for certain is a
// fault with reason PayloadMissing.
func (p *Plan) blob(ctx context.Context, ref v1alpha1.BlobReference) ([]byte, error) {
	if err := p.Hold(ref.Name, perByte*int(ref.Size)); err != nil {
		return nil, err
	}
	data, err := blob.Read(ctx, p.Payloads, ref)
	if fault.Gone(err) {
		return nil, fault.Operatorf(
			ReasonPayloadMissing,
			"the EventPayloads %s were deleted: let the Git service send the event again",
			ref.Name,
		)
	}
	return data, err
}

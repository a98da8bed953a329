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

// ReasonPayloadMissing is the reason of a fault for a payload or a plan that was deleted. It cannot
// be restored. If the delivery is sent again, it is processed as a new one.
const ReasonPayloadMissing = "PayloadMissing"

// perByte is how many bytes of memory a blob takes for each of its bytes: it is there compressed,
// uncompressed and decoded.
const perByte = 3

// Payload reserves memory for the body of the delivery, and reads it. If the body was deleted, the
// error has the reason PayloadMissing. The cache of events does not have it: it is read live unless
// the event was received a moment ago.
func (p *StoredPlan) Payload(ctx context.Context) ([]byte, error) {
	ref := p.event.Spec.Payload
	if ref.Chunks > 0 {
		return p.blob(ctx, ref)
	}
	if err := p.Reserve("payload", perByte*int(ref.Size)); err != nil {
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
		return nil, fault.Operatorf(ReasonPayloadMissing,
			"the payload of GitEvent %s was removed: let the Git service send the event again", p.event.Name)
	}
	return blob.Unpack(live.Payload, ref)
}

// blob reserves memory for a blob of the event, and reads it. If the blob was deleted, the error
// has the reason PayloadMissing.
func (p *StoredPlan) blob(ctx context.Context, ref v1alpha1.BlobReference) ([]byte, error) {
	if err := p.Reserve(ref.Name, perByte*int(ref.Size)); err != nil {
		return nil, err
	}
	data, err := blob.Read(ctx, p.Payloads, ref)
	if fault.Gone(err) {
		return nil, fault.Operatorf(ReasonPayloadMissing,
			"the EventPayloads %s were deleted: let the Git service send the event again", ref.Name)
	}
	return data, err
}

// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// writePayload returns how many bytes of the payloads are there, or may be: some of them when
// others could not be written, and those twice that were tried twice. Made are those of them that
// were not there before.
func (r *Recorder) writePayload(
	ctx context.Context,
	payloads []*v1alpha1.EventPayload,
) (written, made int64, err error) {
	bounded := boundedPayloads{r.Payloads, r.Wait, &atomic.Int64{}, &atomic.Int64{}}
	err = blob.Write(ctx, bounded, payloads)
	if f := fault.Of(err); f != nil && f.Unknown && ctx.Err() == nil {
		err = blob.Write(ctx, bounded, payloads) // it may have landed: writing again tells
	}
	return bounded.written.Load(), bounded.made.Load(), err
}

// payloadName names the blob of a delivery's body. The event's name is part of it, so one event's
// end never deletes another's payload; the digest is, so that what a crash left under this name
// with another body is no obstacle.
//
// The half hour of the attempt is, so that the payload of an earlier attempt is taken over for half
// an hour at most. The sweep deletes payloads without an event when they are an hour old: never one
// that a new event is about to name.
func payloadName(event string, spec *v1alpha1.GitEventSpec) string {
	digest := strings.TrimPrefix(spec.Payload.Digest, "sha256:")[:10]
	return event + "-" + digest + "-" + strconv.FormatInt(spec.ReceivedAt.Unix()/int64(payloadReuse/time.Second), 36)
}

// boundedPayloads bounds each call, and adds up what may have been written.
type boundedPayloads struct {
	client  eventPayloads
	wait    APIWait
	written *atomic.Int64 // bytes in etcd
	made    *atomic.Int64 // of them those that were not there
}

// Create implements blob's writer.
func (b boundedPayloads) Create(
	ctx context.Context,
	payload *v1alpha1.EventPayload,
	opts metav1.CreateOptions,
) (created *v1alpha1.EventPayload, err error) {
	err = uncontended(func() error {
		ctx, cancel := b.wait.call(ctx)
		defer cancel()
		created, err = b.client.Create(ctx, payload, opts)
		return err
	})
	there := apierrors.IsAlreadyExists(err)
	if err == nil || there || fault.FromKube(fault.VerbUpdate, err).Unknown {
		bytes := blob.StoredBytes([]*v1alpha1.EventPayload{payload})
		b.written.Add(bytes)
		if !there {
			b.made.Add(bytes)
		}
	}
	return created, err
}

// Get implements blob's writer.
func (b boundedPayloads) Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1alpha1.EventPayload, error) {
	ctx, cancel := b.wait.call(ctx)
	defer cancel()
	return b.client.Get(ctx, name, opts)
}

// SPDX-License-Identifier: Apache-2.0

package recorder

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

// writePayloads writes the payloads of a body. Existing is how many bytes of them exist or may
// exist afterwards, also after an error; a payload that was tried twice counts twice. Written is
// how many of these bytes did not exist before.
func (r *Recorder) writePayloads(
	ctx context.Context, payloads []*v1alpha1.EventPayload,
) (existing, written int64, err error) {
	client := countingClient{r.Payloads, r.Timeout, &atomic.Int64{}, &atomic.Int64{}}
	err = blob.Write(ctx, client, payloads)
	if f := fault.Of(err); f != nil && f.Unknown && ctx.Err() == nil {
		err = blob.Write(ctx, client, payloads) // the first write may have landed: a second one shows it
	}
	return client.existing.Load(), client.written.Load(), err
}

// payloadName names the payload of a delivery's body:
//   - with the event's name, so that the end of one event never deletes the payload of another;
//   - with the digest, so that a payload of another body, left behind by a crash, is no obstacle;
//   - with the half hour of the attempt, so that the payload of an earlier attempt is taken over
//     for half an hour at most. The sweep deletes payloads without an event when they are an hour
//     old, so never one that a new event is about to name.
func payloadName(event string, spec *v1alpha1.GitEventSpec) string {
	digest := strings.TrimPrefix(spec.Payload.Digest, "sha256:")[:10]
	return event + "-" + digest + "-" + strconv.FormatInt(spec.ReceivedAt.Unix()/int64(payloadReuse/time.Second), 36)
}

// countingClient bounds each call, and adds up the bytes that may have been written.
type countingClient struct {
	client   eventPayloads
	timeout  CallTimeout
	existing *atomic.Int64 // bytes in etcd
	written  *atomic.Int64 // of them those that did not exist before
}

// Create implements blob's writer.
func (c countingClient) Create(
	ctx context.Context, payload *v1alpha1.EventPayload, opts metav1.CreateOptions,
) (created *v1alpha1.EventPayload, err error) {
	err = retryQuotaConflicts(func() error {
		ctx, cancel := c.timeout.Context(ctx)
		defer cancel()
		created, err = c.client.Create(ctx, payload, opts)
		return err
	})
	exists := apierrors.IsAlreadyExists(err)
	if err == nil || exists || fault.FromKube(fault.VerbUpdate, err).Unknown {
		bytes := blob.StoredBytes([]*v1alpha1.EventPayload{payload})
		c.existing.Add(bytes)
		if !exists {
			c.written.Add(bytes)
		}
	}
	return created, err
}

// Get implements blob's writer.
func (c countingClient) Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1alpha1.EventPayload, error) {
	ctx, cancel := c.timeout.Context(ctx)
	defer cancel()
	return c.client.Get(ctx, name, opts)
}

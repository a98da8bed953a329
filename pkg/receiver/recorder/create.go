// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
	"github.com/plumbline-ci/plumbline/pkg/runtime/tracecontext"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// draft is the record of a delivery before it is written.
type draft struct {
	// spec is complete but for where the body is.
	spec *v1alpha1.GitEventSpec
	body []byte
	// packed is nil until compress was called.
	packed *blob.Packed
	// charged is what counts for the rate of the namespace, and written what was written of it.
	charged, written int64
}

func (r *Recorder) newDraft(spec *v1alpha1.GitEventSpec, body []byte, charged int64) *draft {
	d := &draft{spec: spec.DeepCopy(), body: body, charged: charged}
	d.spec.ReceivedAt = metav1.NewTime(r.Clock.Now().Truncate(time.Second))
	d.spec.Payload.Digest = blob.Digest(body)
	return d
}

// fitsInEvent reports whether the body is compressed and fits into its event.
func (d *draft) fitsInEvent() bool {
	return d.packed != nil && len(d.packed.Stream) < v1alpha1.MaxPayloadBytes
}

// compress packs the body, once.
func (d *draft) compress() (err error) {
	if d.packed != nil {
		return nil
	}
	var packed blob.Packed
	if fairness.Compute(d.body, func() { packed, err = blob.Pack(d.body) }); err == nil {
		d.packed = &packed
	}
	return err
}

// chargeEstimate counts a large body before it is compressed, so that of many that arrive at once
// the others need not be compressed. A body that only waits to be recorded does not count yet.
func (r *Recorder) chargeEstimate(spec *v1alpha1.GitEventSpec, size int) (charged int64, err error) {
	if size <= fairness.RateCheckBytes {
		return 0, nil
	}
	charged = int64(size) / fairness.MinCompression
	return charged, r.rates.Charge(fairness.RateKeyOf(spec), charged, r.Clock.Now())
}

// charge counts bytes that are about to be written, unless the draft was counted before.
func (r *Recorder) charge(d *draft, bytes int64) error {
	if d.charged > 0 || bytes == 0 {
		return nil
	}
	if err := r.rates.Charge(fairness.RateKeyOf(d.spec), bytes, r.Clock.Now()); err != nil {
		return err
	}
	d.charged = bytes
	return nil
}

// create writes the record, unless the rate or a quota is exhausted. AlreadyExists stays visible to
// apierrors.
func (r *Recorder) create(ctx context.Context, name string, d *draft) error {
	event := &v1alpha1.GitEvent{Spec: *d.spec.DeepCopy(),
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   r.Namespace,
			Name:        name,
			Annotations: tracecontext.Annotations(ctx),
			Labels:      map[string]string{plumbline.SubjectLabel: d.spec.Subject()},
		}}
	if !d.fitsInEvent() {
		return r.createWithPayloads(ctx, event, d)
	}
	event.Spec.Payload, event.Payload = d.packed.Whole(), d.packed.Stream
	stored := blob.InJSON(event.Payload)
	cost := fairness.InEvent(stored)
	if err := r.charge(d, cost); err != nil {
		return err
	}
	if err := r.admit(event, stored); err != nil {
		return err
	}
	err := r.createEvent(ctx, event)
	if f := fault.Of(err); f == nil || f.Unknown && !apierrors.IsAlreadyExists(err) {
		d.written += cost // an event that may exist counts until the watch would have shown it
	} else {
		r.Quota.Release(name)
	}
	return err
}

// createWithPayloads writes the EventPayloads of a body before its event.
func (r *Recorder) createWithPayloads(ctx context.Context, event *v1alpha1.GitEvent, d *draft) error {
	if err := d.compress(); err != nil {
		return err
	}
	ref, payloads := d.packed.Chunks(r.Namespace, payloadName(event.Name, &event.Spec), event.Name)
	event.Spec.Payload = ref
	stored := blob.StoredBytes(payloads)
	if err := r.charge(d, stored); err != nil {
		return err
	}
	if err := r.admit(event, stored); err != nil {
		return err
	}
	existing, written, err := r.writePayloads(ctx, payloads)
	d.written += written
	if err != nil {
		r.Quota.Orphaned(event.Name, min(existing, stored))
		return err
	}
	err = r.createEvent(ctx, event)
	switch {
	case apierrors.IsAlreadyExists(err):
		r.Quota.Release(event.Name) // the watch shows whose event it is
	case err != nil:
		r.Quota.Orphaned(event.Name, stored)
	}
	return err
}

func (r *Recorder) createEvent(ctx context.Context, event *v1alpha1.GitEvent) error {
	err := retryQuotaConflicts(func() error {
		ctx, cancel := r.Timeout.Context(ctx)
		defer cancel()
		at := r.Clock.Now()
		created, err := r.Events.Create(ctx, event, metav1.CreateOptions{})
		if err == nil {
			r.compareClocks(created.CreationTimestamp, at)
		}
		return err
	})
	if err == nil {
		return nil
	}
	return r.confirm(ctx, event, err)
}

// confirm resolves a failed create whose outcome is unknown: if the record is there, it succeeded.
func (r *Recorder) confirm(ctx context.Context, event *v1alpha1.GitEvent, err error) error {
	f := fault.FromKube(fault.VerbUpdate, err) // as an update: a denial here is never about the author's text
	failed := fmt.Errorf("creating GitEvent %s: %w", event.Name, f)
	if !f.Unknown {
		return failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Timeout.Scale(ConfirmTimeout))
	defer cancel()
	existing, err := r.Events.Get(ctx, event.Name, metav1.GetOptions{})
	if err == nil && compare(existing, &event.Spec) == alreadyRecorded {
		return nil
	}
	return failed
}

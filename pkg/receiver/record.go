// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
	"github.com/plumbline-ci/plumbline/pkg/runtime/tracecontext"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

type gitEvents interface {
	Create(ctx context.Context, event *v1alpha1.GitEvent, opts metav1.CreateOptions) (*v1alpha1.GitEvent, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1alpha1.GitEvent, error)
	Patch(
		ctx context.Context,
		name string,
		pt types.PatchType,
		data []byte,
		o metav1.PatchOptions,
		subresources ...string,
	) (*v1alpha1.GitEvent, error)
}

type eventPayloads interface {
	Create(ctx context.Context, payload *v1alpha1.EventPayload, opts metav1.CreateOptions) (*v1alpha1.EventPayload, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1alpha1.EventPayload, error)
}

type tombstonePages interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1alpha1.TombstonePage, error)
	Patch(
		ctx context.Context,
		name string,
		pt types.PatchType,
		data []byte,
		o metav1.PatchOptions,
		subresources ...string,
	) (*v1alpha1.TombstonePage, error)
}

// Recorder makes deliveries durable.
type Recorder struct {
	// Namespace is Plumbline's own; Events, Payloads and Tombstones are clients for it.
	Namespace  string
	Events     gitEvents
	Payloads   eventPayloads
	Tombstones tombstonePages
	Clock      clock.PassiveClock
	// Budget is what open events use; deliveries beyond it are not recorded.
	Budget *quota.Ledger
	// Retention is how long what was delivered is remembered (settled-retention-days); nil leaves
	// tombstones as they are.
	Retention func() time.Duration
	// Wait is how long each call may take.
	Wait APIWait

	// clocksAgree is our time of the last create, if that showed that the API server's clock is
	// ours.
	clocksAgree atomic.Pointer[time.Time]
	// rates are what the payloads of namespaces have taken.
	rates fairness.Rates
}

// parcel is a delivery that is being recorded.
type parcel struct {
	spec *v1alpha1.GitEventSpec
	body []byte
	// packed is nil until the body is: that of a large one is packed once it is known that it is
	// stored.
	packed *blob.Packed
	// taken is what counts for the rate of its namespace, and made what was written of it.
	taken, made int64
}

// whole reports whether the body fits into its event.
func (p *parcel) whole() bool {
	return p.packed != nil && len(p.packed.Stream) < v1alpha1.MaxPayloadBytes
}

// compress packs the body, once.
func (p *parcel) compress() (err error) {
	if p.packed != nil {
		return nil
	}
	var packed blob.Packed
	if fairness.Worked(p.body, func() { packed, err = blob.Pack(p.body) }); err == nil {
		p.packed = &packed
	}
	return err
}

// pack completes the spec but for where the body is.
func (r *Recorder) pack(spec *v1alpha1.GitEventSpec, body []byte) (*parcel, error) {
	p := &parcel{spec: spec.DeepCopy(), body: body}
	p.spec.ReceivedAt = metav1.NewTime(r.Clock.Now().Truncate(time.Second))
	p.spec.Payload.Digest = blob.Digest(body)
	if len(body) > smallBodyBytes {
		return p, nil
	}
	return p, p.compress()
}

// Affords returns a Throttled fault if a push's body of that size, or another event's, would not be
// recorded for a namespace now, because of what was written for it before.
func (r *Recorder) Affords(namespace string, push bool, size int) error {
	if size <= fairness.SurelyLarge {
		return nil
	}
	return r.rates.Over(fairness.Rate{Namespace: namespace, Push: push}, r.Clock.Now())
}

// Record returns the name of the GitEvent that records the delivery, and whether this call created
// it. It returns without error only when that GitEvent is in the API server, or its tombstone.
// Every error means that the delivery must come again; it is safe to repeat at any time and on any
// number of replicas at once.
func (r *Recorder) Record(
	ctx context.Context,
	spec *v1alpha1.GitEventSpec,
	body []byte,
) (name string, created bool, err error) {
	rate, taken := fairness.RateOf(spec), int64(0)
	if err := r.Affords(rate.Namespace, rate.Push, len(body)); err != nil {
		return "", false, err
	}
	if len(
		body,
	) > fairness.SurelyLarge { // it counts before it is packed, so that of many at once the others need not be; not while it only waits
		taken = int64(len(body)) / fairness.UsuallyPacked
		if err := r.rates.Take(rate, taken, r.Clock.Now()); err != nil {
			return "", false, err
		}
	}
	p, err := r.pack(spec, body)
	p.taken = taken
	// What was refused, or is there since an attempt before, cost little.
	defer func() { r.rates.Give(rate, p.taken-p.made) }()
	if err != nil {
		return "", false, err
	}
	base := p.spec.EventName()
	seen := r.before(ctx, base, p)
	for n := range maxReopened + 1 {
		name := base
		if n > 0 {
			name = v1alpha1.ReopenedName(base, n)
			seen = r.before(ctx, name, p)
		}
		verdict, created, err := r.settleOn(ctx, name, seen, p)
		if err != nil {
			return "", false, err
		}
		if verdict == alreadyRecorded {
			return name, created, nil
		}
	}
	return "", false, fault.Operatorf(
		"RedeliveryLimit",
		"GitEvent %s and %d later ones of the same delivery all ended without runs",
		base,
		maxReopened,
	)
}

// settleOn finds out what the name means for the delivery, and creates the record if the name is
// free as far as was seen.
func (r *Recorder) settleOn(ctx context.Context, name string, seen sight, p *parcel) (verdict, bool, error) {
	for range maxNameRaces {
		if seen.known || seen.err != nil {
			return seen.verdict, false, seen.err
		}
		err := r.create(ctx, name, p)
		if err == nil {
			return alreadyRecorded, true, nil
		}
		full := isBudget(err) // which a copy of what is recorded already need not fit into
		if !full && !apierrors.IsAlreadyExists(err) {
			return foreign, false, err
		}
		seen = r.look(ctx, name, p.spec)
		if full && !seen.known {
			return foreign, false, err
		}
	}
	return foreign, false, fault.Transientf("NameRace", "GitEvent %s appears and disappears", name)
}

// create writes the record; AlreadyExists stays visible to apierrors. It writes nothing if a budget
// is used up.
func (r *Recorder) create(ctx context.Context, name string, p *parcel) error {
	event := &v1alpha1.GitEvent{Spec: *p.spec.DeepCopy(),
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   r.Namespace,
			Name:        name,
			Annotations: tracecontext.Annotations(ctx),
			Labels:      map[string]string{plumbline.SubjectLabel: p.spec.Subject()},
		}}
	if !p.whole() {
		return r.createWithPayloads(ctx, event, p)
	}
	event.Spec.Payload, event.Payload = p.packed.Whole(), p.packed.Stream
	stored := blob.InJSON(event.Payload)
	cost := fairness.InEvent(stored)
	if err := r.take(p, cost); err != nil {
		return err
	}
	if err := r.admit(event, stored); err != nil {
		return err
	}
	err := r.createEvent(ctx, event)
	if err == nil || fault.Of(err).Unknown && !apierrors.IsAlreadyExists(err) {
		p.made += cost
	}
	if f := fault.Of(err); f != nil && (!f.Unknown || apierrors.IsAlreadyExists(err)) {
		r.Budget.Release(name) // one that may be there counts until the watch would have shown it
	}
	return err
}

// createWithPayloads writes the EventPayloads of a body before its event.
func (r *Recorder) createWithPayloads(ctx context.Context, event *v1alpha1.GitEvent, p *parcel) error {
	if err := p.compress(); err != nil {
		return err
	}
	ref, payloads := p.packed.Chunks(r.Namespace, payloadName(event.Name, &event.Spec), event.Name)
	event.Spec.Payload = ref
	stored := blob.StoredBytes(payloads)
	if err := r.take(p, stored); err != nil {
		return err
	}
	if err := r.admit(event, stored); err != nil {
		return err
	}
	written, made, err := r.writePayload(ctx, payloads)
	p.made += made
	if err != nil {
		r.Budget.Orphaned(event.Name, min(written, stored))
		return err
	}
	err = r.createEvent(ctx, event)
	switch {
	case apierrors.IsAlreadyExists(err):
		r.Budget.Release(event.Name) // the watch shows whose it is
	case err != nil:
		r.Budget.Orphaned(event.Name, stored)
	}
	return err
}

// take counts bytes that are about to be written for the rate of the parcel's namespace, unless
// something was counted for it before.
func (r *Recorder) take(p *parcel, bytes int64) error {
	if p.taken > 0 || bytes == 0 {
		return nil
	}
	if err := r.rates.Take(fairness.RateOf(p.spec), bytes, r.Clock.Now()); err != nil {
		return err
	}
	p.taken = bytes
	return nil
}

func (r *Recorder) createEvent(ctx context.Context, event *v1alpha1.GitEvent) error {
	err := uncontended(func() error {
		ctx, cancel := r.Wait.call(ctx)
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

// confirm resolves a create that failed: if its outcome is unknown and the record is there, it
// succeeded.
func (r *Recorder) confirm(ctx context.Context, event *v1alpha1.GitEvent, err error) error {
	f := fault.FromKube(fault.VerbUpdate, err) // as an update: what is denied here is never the author's text
	failed := fmt.Errorf("creating GitEvent %s: %w", event.Name, f)
	if !f.Unknown {
		return failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Wait.budget(confirmBudget))
	defer cancel()
	existing, err := r.Events.Get(ctx, event.Name, metav1.GetOptions{})
	if err == nil && judge(existing, &event.Spec) == alreadyRecorded {
		return nil
	}
	return failed
}

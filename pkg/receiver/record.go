// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/blob"
	"github.com/plumbline-ci/plumbline/pkg/budget"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/tombstone"
	"github.com/plumbline-ci/plumbline/pkg/tracecontext"
)

type gitEvents interface {
	Create(ctx context.Context, event *v1alpha1.GitEvent, opts metav1.CreateOptions) (*v1alpha1.GitEvent, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1alpha1.GitEvent, error)
}

type eventPayloads interface {
	Create(ctx context.Context, payload *v1alpha1.EventPayload, opts metav1.CreateOptions) (*v1alpha1.EventPayload, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1alpha1.EventPayload, error)
}

type tombstonePages interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1alpha1.TombstonePage, error)
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
	Budget *budget.Ledger
	// Started is when this process did.
	Started time.Time
}

// Record returns the name of the GitEvent that records the delivery, and whether this call created it. It returns
// without error only when that GitEvent is in the API server, or its tombstone. Every error means that the delivery must come
// again; it is safe to repeat at any time and on any number of replicas at once.
//
// A name is read before anything is written, so that the redelivery of a settled event, whose payload is deleted
// already, leaves no new payload behind that nothing would delete.
func (r *Recorder) Record(ctx context.Context, spec *v1alpha1.GitEventSpec, body []byte) (name string, created bool, err error) {
	spec = spec.DeepCopy()
	spec.Payload.Digest = blob.Digest(body)
	spec.ReceivedAt = metav1.NewTime(r.Clock.Now().Truncate(time.Second))
	base, err := r.firstName(ctx, spec)
	if err != nil {
		return "", false, err
	}
	for n := range maxReopened + 1 {
		name := base
		if n > 0 {
			name = v1alpha1.ReopenedName(base, n)
		}
		verdict, created, err := r.settleOn(ctx, name, spec, body)
		if err != nil {
			return "", false, err
		}
		if verdict == alreadyRecorded {
			return name, created, nil
		}
	}
	return "", false, fault.Operatorf("RedeliveryLimit", "GitEvent %s and %d later ones of the same delivery all ended without runs", base, maxReopened)
}

// settleOn finds out what the name means for the delivery, and creates the record if the name is free.
func (r *Recorder) settleOn(ctx context.Context, name string, spec *v1alpha1.GitEventSpec, body []byte) (verdict, bool, error) {
	for range maxNameRaces {
		existing, err := r.get(ctx, name)
		if err == nil {
			found, err := checked(existing, spec)
			return found, false, err
		}
		if !apierrors.IsNotFound(err) {
			return foreign, false, fmt.Errorf("reading GitEvent %s: %w", name, fault.FromKube(fault.VerbRead, err))
		}
		// In this order: the sweep writes the tombstone before it deletes the event.
		if found, buried, err := r.remembered(ctx, name, spec); buried || err != nil {
			return found, false, err
		}
		err = r.create(ctx, name, spec, body)
		if err == nil {
			return alreadyRecorded, true, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return foreign, false, err
		}
	}
	return foreign, false, fault.Transientf("NameRace", "GitEvent %s appears and disappears", name)
}

// remembered looks for what is left of an event that was deleted while its delivery may be sent again. That there is
// nothing must be certain: otherwise the delivery could be processed twice.
func (r *Recorder) remembered(ctx context.Context, name string, spec *v1alpha1.GitEventSpec) (found verdict, buried bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, kubeCallBudget)
	defer cancel()
	page, err := r.Tombstones.Get(ctx, tombstone.PageOf(name), metav1.GetOptions{})
	if fault.Gone(err) {
		return foreign, false, nil
	}
	if err != nil {
		return foreign, false, fmt.Errorf("reading TombstonePage %s: %w", tombstone.PageOf(name), fault.FromKube(fault.VerbRead, err))
	}
	entry, buried := tombstone.Find(page, name, r.Clock.Now())
	switch {
	case !buried:
		return foreign, false, nil
	case !entry.Records(spec.Payload.Digest):
		return foreign, true, foreignEvent(r.Namespace, name)
	case entry.Again:
		return processAgain, true, nil
	}
	return alreadyRecorded, true, nil
}

// checked turns a foreign record into an error.
func checked(existing *v1alpha1.GitEvent, spec *v1alpha1.GitEventSpec) (verdict, error) {
	found := judge(existing, spec)
	if found == foreign {
		return foreign, foreignEvent(existing.Namespace, existing.Name)
	}
	return found, nil
}

func foreignEvent(namespace, name string) error {
	return fault.Operatorf("ForeignEvent", "GitEvent %s/%s records another delivery", namespace, name)
}

// create writes the payload and then the event; AlreadyExists stays visible to apierrors. It writes nothing if a budget is
// used up.
func (r *Recorder) create(ctx context.Context, name string, spec *v1alpha1.GitEventSpec, body []byte) error {
	ref, payloads, err := blob.Make(r.Namespace, payloadName(name, spec), name, body)
	if err != nil {
		return err
	}
	repository := types.NamespacedName{Namespace: spec.Repository.Namespace, Name: spec.Repository.Name}
	stored := storedBytes(payloads)
	if err := r.admit(name, repository, stored); err != nil {
		return err
	}
	if written, err := r.writePayload(ctx, payloads); err != nil {
		r.Budget.Orphaned(name, min(written, stored))
		return err
	}
	event := &v1alpha1.GitEvent{Spec: *spec.DeepCopy(),
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name, Annotations: tracecontext.Annotations(ctx)}}
	event.Spec.Payload = ref
	budget.Annotate(event, repository, stored)
	err = r.createEvent(ctx, event)
	switch {
	case apierrors.IsAlreadyExists(err):
		r.Budget.Dropped(name) // the watch shows whose it is
	case err != nil:
		r.Budget.Orphaned(name, stored)
	}
	return err
}

// writePayload returns how many bytes of the payloads are there, or may be: some of them when others could not be written, and
// those twice that were tried twice.
func (r *Recorder) writePayload(ctx context.Context, payloads []*v1alpha1.EventPayload) (written int64, err error) {
	bounded := boundedPayloads{r.Payloads, &atomic.Int64{}}
	err = blob.Write(ctx, bounded, payloads)
	if f := fault.Of(err); f != nil && f.Unknown && ctx.Err() == nil {
		err = blob.Write(ctx, bounded, payloads) // it may have landed: writing again tells
	}
	return bounded.written.Load(), err
}

func (r *Recorder) createEvent(ctx context.Context, event *v1alpha1.GitEvent) error {
	err := uncontended(func() error {
		ctx, cancel := context.WithTimeout(ctx, kubeCallBudget)
		defer cancel()
		_, err := r.Events.Create(ctx, event, metav1.CreateOptions{})
		return err
	})
	if err == nil {
		return nil
	}
	return r.confirm(ctx, event, err)
}

// payloadName names the blob of a delivery's body. The event's name is part of it, so one event's end never deletes
// another's payload; the digest is, so that what a crash left under this name with another body is no obstacle.
//
// The half hour of the attempt is, so that the payload of an earlier attempt is taken over for half an hour at most. The
// sweep deletes payloads without an event when they are an hour old: never one that a new event is about to name.
func payloadName(event string, spec *v1alpha1.GitEventSpec) string {
	digest := strings.TrimPrefix(spec.Payload.Digest, "sha256:")[:10]
	return event + "-" + digest + "-" + strconv.FormatInt(spec.ReceivedAt.Unix()/int64(payloadReuse/time.Second), 36)
}

// confirm resolves a create that failed: if its outcome is unknown and the record is there, it succeeded.
func (r *Recorder) confirm(ctx context.Context, event *v1alpha1.GitEvent, err error) error {
	f := fault.FromKube(fault.VerbUpdate, err) // as an update: what is denied here is never the author's text
	failed := fmt.Errorf("creating GitEvent %s: %w", event.Name, f)
	if !f.Unknown {
		return failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmBudget)
	defer cancel()
	existing, err := r.Events.Get(ctx, event.Name, metav1.GetOptions{})
	if err == nil && judge(existing, &event.Spec) == alreadyRecorded {
		return nil
	}
	return failed
}

func (r *Recorder) get(ctx context.Context, name string) (*v1alpha1.GitEvent, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeCallBudget)
	defer cancel()
	return r.Events.Get(ctx, name, metav1.GetOptions{})
}

// boundedPayloads bounds each call, and adds up what may have been written.
type boundedPayloads struct {
	client  eventPayloads
	written *atomic.Int64 // bytes in etcd
}

// Create implements blob's writer.
func (b boundedPayloads) Create(ctx context.Context, payload *v1alpha1.EventPayload, opts metav1.CreateOptions) (created *v1alpha1.EventPayload, err error) {
	err = uncontended(func() error {
		ctx, cancel := context.WithTimeout(ctx, kubeCallBudget)
		defer cancel()
		created, err = b.client.Create(ctx, payload, opts)
		return err
	})
	if err == nil || apierrors.IsAlreadyExists(err) || fault.FromKube(fault.VerbUpdate, err).Unknown {
		b.written.Add(storedBytes([]*v1alpha1.EventPayload{payload}))
	}
	return created, err
}

// Get implements blob's writer.
func (b boundedPayloads) Get(ctx context.Context, name string, opts metav1.GetOptions) (*v1alpha1.EventPayload, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeCallBudget)
	defer cancel()
	return b.client.Get(ctx, name, opts)
}

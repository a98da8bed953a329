// SPDX-License-Identifier: Apache-2.0

// Package recorder makes deliveries durable: it writes the GitEvent of a delivery and its payload,
// exactly once however often the delivery is sent, on any number of replicas at once.
package recorder

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
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

// Recorder writes the records of deliveries.
type Recorder struct {
	// Namespace is Plumbline's own. Events, Payloads and Tombstones are clients for it.
	Namespace  string
	Events     gitEvents
	Payloads   eventPayloads
	Tombstones tombstonePages
	Clock      clock.PassiveClock
	// Quota is what unsettled events use. A delivery that exceeds it is not recorded.
	Quota *quota.Ledger
	// Retention is how long the record of a delivery is kept (settled-retention-days).
	Retention func() time.Duration
	// Timeout bounds each call.
	Timeout CallTimeout

	// clocksAgree is our time of the last create, if that create showed that our clock and the API
	// server's agree.
	clocksAgree atomic.Pointer[time.Time]
	rates       fairness.Rates
}

// CheckRate returns a Throttled fault if a body of that size, of a push or of another event, would
// not be recorded for a namespace now because of the bytes that were written for it before.
func (r *Recorder) CheckRate(namespace string, push bool, size int) error {
	if size <= fairness.RateCheckBytes {
		return nil
	}
	return r.rates.Check(fairness.RateKey{Namespace: namespace, Push: push}, r.Clock.Now())
}

// Record returns the name of the GitEvent that records the delivery, and whether this call created
// it. Without an error, that GitEvent or its tombstone is in the API server. Every error means that
// the delivery must be sent again; Record is safe to repeat at any time and on any number of
// replicas at once.
func (r *Recorder) Record(
	ctx context.Context, spec *v1alpha1.GitEventSpec, body []byte,
) (name string, created bool, err error) {
	charged, err := r.chargeEstimate(spec, len(body))
	if err != nil {
		return "", false, err
	}
	d := r.newDraft(spec, body, charged)
	// A delivery that is refused, or was recorded by an earlier attempt, costs little.
	defer func() { r.rates.Refund(fairness.RateKeyOf(spec), d.charged-d.written) }()
	if len(body) <= eagerCompression {
		if err := d.compress(); err != nil {
			return "", false, err
		}
	}
	base := d.spec.EventName()
	for n := range maxReopened + 1 {
		name := base
		if n > 0 {
			name = v1alpha1.ReopenedName(base, n)
		}
		verdict, created, err := r.recordAs(ctx, name, d)
		if err != nil {
			return "", false, err
		}
		if verdict == alreadyRecorded {
			return name, created, nil
		}
	}
	return "", false, fault.Operatorf(reasonRedeliveryLimit,
		"GitEvent %s and %d later ones of the same delivery all ended without runs", base, maxReopened)
}

// recordAs finds out what a name means for the delivery, and creates the record if the name is
// free.
func (r *Recorder) recordAs(ctx context.Context, name string, d *draft) (verdict, bool, error) {
	seen := r.lookUpFirst(ctx, name, d)
	for range maxNameRaces {
		if seen.exists || seen.err != nil {
			return seen.verdict, false, seen.err
		}
		err := r.create(ctx, name, d)
		if err == nil {
			return alreadyRecorded, true, nil
		}
		full := QuotaScope(fault.Of(err).Reason) != ""
		if !full && !apierrors.IsAlreadyExists(err) {
			return foreign, false, err
		}
		seen = r.lookUp(ctx, name, d.spec)
		if full && !seen.exists { // a copy of a recorded delivery needs no quota
			return foreign, false, err
		}
	}
	return foreign, false, fault.Transientf(reasonNameRace, "GitEvent %s appears and disappears", name)
}

// SPDX-License-Identifier: Apache-2.0

// Package sweep removes what is no longer needed: settled events, payloads without an open event,
// secrets that came late. It also has the checks closed of PipelineRuns without an event.
package sweep

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

const (
	// every is the time between two passes.
	every = 10 * time.Minute
	// deadline bounds one reconcile: it is shorter than the pod's grace period.
	deadline = 40 * time.Second
	// turn is how long a reconcile takes up new objects; then another one goes on from there.
	turn = 10 * time.Second
	// soon is the pause between two reconciles of a pass.
	soon = 100 * time.Millisecond
	// rest is the pause after a page. One of 500 events costs the API server 170 ms of CPU, which
	// events need at the same time; a pass over 100,000 of them takes ten minutes then.
	rest = time.Second
)

// Reconciler carries one pass after the other through its phases. Its key is always the same, so
// there is one of it at a time in a process; two processes may overlap, and every write is guarded
// by a UID or a resource version.
type Reconciler struct {
	reconciler.LeaderAwareFuncs

	namespace string

	events     plumblineclient.GitEventInterface
	payloads   plumblineclient.EventPayloadInterface
	tombstones plumblineclient.TombstonePageInterface
	secrets    corev1.SecretsGetter
	closer     Closer
	open       func(event string) bool // the cache says that the event is not settled
	settings   *config.Store
	clock      clock.PassiveClock
	metrics    *metrics
	forget     func() // makes the workqueue forget the failures of the key: no reconcile ends without asking for the next

	phases []phase
	at     position
	ages   ages   // of the stubs, as counted in this pass
	found  counts // in this pass
	looks  *looks // of this pass, at runs without an open event
}

var _ controller.Reconciler = (*Reconciler)(nil)

// counts are what a pass has found.
type counts struct {
	stubs, tombstones int
	// asked is for how many runs without an event a Git service was asked, askedOf for how many of
	// a namespace.
	asked   int
	askedOf map[string]int
	// told is for how many settled events one was asked, toldOf for how many of a namespace.
	told   int
	toldOf map[string]int
	// spared are the events that were not deleted because of what they have to report, sparedOf how
	// many of a namespace.
	spared   map[types.UID]bool
	sparedOf map[string]int
	// hangs are the namespaces whose Secrets take long and cannot be deleted.
	hangs map[string]bool
	// partial tells that a kind could not be listed.
	partial bool
}

// runs is the resource of PipelineRuns, which are those of all namespaces.
const runs = "pipelineruns"

// resources lists a kind of Plumbline's own, or runs; metadata only.
type resources func(resource string) metadata.ResourceInterface

func (r *Reconciler) plan(of resources) {
	settled := "status.phase=" + string(v1alpha1.PhaseSettled)
	r.phases = []phase{
		// Events whose secrets may still come are no others' business until that is over.
		{
			name:     "late secrets",
			list:     of("gitevents"),
			selector: settled + ",status.lateSecrets=true",
			batch:    1,
			handle:   each(r.collectSecrets),
		},
		{
			name:     "old events",
			list:     of("gitevents"),
			selector: settled + ",status.lateSecrets!=true",
			batch:    1,
			handle:   each(r.expire),
		},
		{
			name:     "events above the cap",
			list:     of("gitevents"),
			selector: settled + ",status.lateSecrets!=true",
			batch:    evictBatch,
			handle:   r.evict,
			due:      func() bool { return r.ages.excess() > 0 },
		},
		{name: "orphaned payloads", list: of("eventpayloads"), batch: 1, handle: each(r.collectPayload)},
		{
			name:     "reports that were given up",
			list:     of("gitevents"),
			selector: settled + ",status.unreported=true",
			batch:    1,
			handle:   each(r.report),
		},
		{
			name:   "runs without an event",
			list:   of(runs),
			labels: pipelineruns.RunSelector(r.namespace),
			batch:  1,
			handle: each(r.closeRun),
		},
		{name: "tombstones", list: of("tombstonepages"), batch: 1, handle: each(r.tidy)},
	}
}

// each handles objects one by one.
func each(
	handle func(context.Context, *metav1.PartialObjectMetadata) error,
) func(context.Context, []metav1.PartialObjectMetadata) error {
	return func(ctx context.Context, objects []metav1.PartialObjectMetadata) error {
		for i := range objects {
			if err := handle(ctx, &objects[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// Reconcile goes on with the pass for a turn. What failed is tried again from where it was.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil // a key that is none cannot become one: nothing to requeue
	}
	if !r.IsLeaderFor(types.NamespacedName{Namespace: namespace, Name: name}) {
		return controller.NewSkipKey(key) // the leader's promotion enqueues it there
	}
	ctx = r.settings.ToContext(ctx)
	began := r.clock.Now()
	over := func() bool { return r.clock.Since(began) > turn }
	if r.at == (position{}) {
		r.begin(ctx)
	}
	for r.at.phase < len(r.phases) {
		if over() {
			return backoff.Requeue(goesOn())
		}
		if err := r.goOn(ctx, over); err != nil {
			return backoff.Requeue(err)
		}
		r.forget()
		if r.at.token != "" {
			return backoff.Requeue(fault.Throttledf("SweepRests", rest, "the sweep goes on with the next page"))
		}
	}
	if !r.found.partial {
		r.metrics.passed(ctx, r.found, r.clock.Now())
	}
	r.at = position{}
	return backoff.Requeue(fault.Throttledf("NextSweep", every, "the next sweep"))
}

// goesOn ends a turn.
func goesOn() error { return fault.Throttledf("SweepGoesOn", soon, "the sweep goes on") }

// begin starts a pass.
func (r *Reconciler) begin(ctx context.Context) {
	r.ages = ages{keep: config.FromContext(ctx).SettledCap, perMinute: map[int64]int{}}
	r.found = counts{
		askedOf:  map[string]int{},
		toldOf:   map[string]int{},
		hangs:    map[string]bool{},
		spared:   map[types.UID]bool{},
		sparedOf: map[string]int{},
	}
	if r.looks == nil || r.looks.next == nil {
		r.looks = newLooks()
	} else {
		r.looks = r.looks.next
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package sweep deletes what is no longer needed: old settled events, payloads without an unsettled
// event, and Secrets that were created late. It also closes the checks of PipelineRuns without an
// event.
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
	// deadline bounds one reconcile. It is shorter than the pod's grace period.
	deadline = 40 * time.Second
	// workFor is how long one reconcile takes new objects. The next one goes on from there.
	workFor = 10 * time.Second
	// soon is the pause between two reconciles of a pass.
	soon = 100 * time.Millisecond
	// pagePause is the pause after a page. A page of 500 events costs the API server 170 ms of CPU,
	// which events need at the same time. A pass over 100,000 events then takes ten minutes.
	pagePause = time.Second
)

// Reconciler makes one pass after the other through its phases. It has one key, so there is one
// pass at a time in a process. The passes of two processes may overlap: every write is guarded by a
// UID or a resource version.
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
	forget     func() // resets the workqueue's failures of the key: each reconcile requests the next one

	phases []phase
	at     position
	ages   ages      // of the stubs that this pass has counted
	found  counts    // in this pass
	limit  *runLimit // of this pass, for runs without an unsettled event
}

var _ controller.Reconciler = (*Reconciler)(nil)

// counts are what a pass has found.
type counts struct {
	stubs, tombstones int
	// closed counts the runs for which a Git service was called, and closedOf those of a namespace.
	closed   int
	closedOf map[string]int
	// reported counts the settled events for which a Git service was called, and reportedOf those
	// of a namespace.
	reported   int
	reportedOf map[string]int
	// spared are the events that were not deleted because they have something to report, and
	// sparedOf counts those of a namespace.
	spared   map[types.UID]bool
	sparedOf map[string]int
	// hangs are the namespaces whose Secrets take long and cannot be deleted.
	hangs map[string]bool
	// partial is set if a kind could not be listed.
	partial bool
}

// runs is the resource of PipelineRuns, in all namespaces.
const runs = "pipelineruns"

// resources lists the metadata of one of Plumbline's kinds, or of PipelineRuns.
type resources func(resource string) metadata.ResourceInterface

func (r *Reconciler) plan(of resources) {
	settled := "status.phase=" + string(v1alpha1.PhaseSettled)
	r.phases = []phase{
		// Other phases leave events alone whose Secrets may still be created.
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
		{name: "tombstones", list: of("tombstonepages"), batch: 1, handle: each(r.pruneTombstones)},
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

// Reconcile continues the pass for a while. What failed is retried from there.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil // an invalid key stays invalid
	}
	if !r.IsLeaderFor(types.NamespacedName{Namespace: namespace, Name: name}) {
		return controller.NewSkipKey(key) // the leader's promotion enqueues it there
	}
	ctx = r.settings.ToContext(ctx)
	began := r.clock.Now()
	over := func() bool { return r.clock.Since(began) > workFor }
	if r.at == (position{}) {
		r.startPass(ctx)
	}
	for r.at.phase < len(r.phases) {
		if over() {
			return backoff.Requeue(continueSoon())
		}
		if err := r.nextPage(ctx, over); err != nil {
			return backoff.Requeue(err)
		}
		r.forget()
		if r.at.token != "" {
			return backoff.Requeue(fault.Throttledf(reasonSweepPauses, pagePause, "the sweep continues with the next page"))
		}
	}
	if !r.found.partial {
		r.metrics.passed(ctx, r.found, r.clock.Now())
	}
	r.at = position{}
	return backoff.Requeue(fault.Throttledf(reasonNextSweep, every, "the next sweep"))
}

// continueSoon requests the next reconcile of the pass.
func continueSoon() error { return fault.Throttledf(reasonSweepGoesOn, soon, "the sweep continues") }

// startPass starts a pass.
func (r *Reconciler) startPass(ctx context.Context) {
	r.ages = ages{keep: config.FromContext(ctx).SettledCap, perMinute: map[int64]int{}}
	r.found = counts{
		closedOf:   map[string]int{},
		reportedOf: map[string]int{},
		hangs:      map[string]bool{},
		spared:     map[types.UID]bool{},
		sparedOf:   map[string]int{},
	}
	if r.limit == nil || r.limit.next == nil {
		r.limit = newRunLimit()
	} else {
		r.limit = r.limit.next
	}
}

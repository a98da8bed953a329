// SPDX-License-Identifier: Apache-2.0

// Package redelivery finds the deliveries that no receiver recorded and requests them again. No Git
// service does so by itself (docs/adr/0030). A delivery is undelivered when no receiver was
// reachable, or when the receiver answered 503.
//
// The package holds what all logs of deliveries have in common: the reconciler, the schedule of the
// reads, the queue of the requests, the ConfigMap, the metrics and the Events. Package applog reads
// the log of the GitHub App, package hooklog the logs of GitLab's webhooks.
//
// The controller records no delivery. A delivery that is sent again reaches a receiver, which
// recognizes the deliveries that it has recorded. A request too many costs one call.
package redelivery

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	pkgreconciler "knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
)

// atLeast is the shortest time between two reconciles of a key.
const atLeast = 100 * time.Millisecond

// Source is a kind of log of deliveries.
type Source interface {
	// Keys returns the keys that are reconciled, one for each log.
	Keys() []types.NamespacedName
	// Step reads a log if that is due, or requests one delivery. Signalled is when a receiver last
	// reported that deliveries may be undelivered. Step returns when the key is due again, and
	// false if it has nothing to do until the key changes. Steps of one key do not overlap.
	Step(ctx context.Context, key types.NamespacedName, signalled time.Time) (wait time.Duration, again bool)
	// Forget drops the memory of a key, whose lease another process holds.
	Forget(key types.NamespacedName)
}

// Reconciler implements knative's controller.Reconciler and reconciler.LeaderAware.
type Reconciler struct {
	pkgreconciler.LeaderAwareFuncs

	source  Source
	clock   clock.PassiveClock
	timeout time.Duration

	mu        sync.Mutex
	signalled time.Time
}

var (
	_ controller.Reconciler     = (*Reconciler)(nil)
	_ pkgreconciler.LeaderAware = (*Reconciler)(nil)
)

// NewReconciler returns the reconciler of a source. Timeout ends one step.
func NewReconciler(source Source, clock clock.PassiveClock, timeout time.Duration) *Reconciler {
	r := &Reconciler{source: source, clock: clock, timeout: timeout}
	r.PromoteFunc = func(b pkgreconciler.Bucket, enqueue func(pkgreconciler.Bucket, types.NamespacedName)) error {
		for _, key := range source.Keys() {
			enqueue(b, key)
		}
		return nil
	}
	return r
}

// Signal records that a receiver reports that deliveries may be undelivered. It returns after which
// time all keys are to be reconciled.
func (r *Reconciler) Signal() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signalled = r.clock.Now()
	return settleAfter
}

func (r *Reconciler) lastSignal() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.signalled
}

// Reconcile makes one step with the log of the key.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil // no log has such a key
	}
	owner := types.NamespacedName{Namespace: namespace, Name: name}
	if !r.IsLeaderFor(owner) {
		r.source.Forget(owner)
		return controller.NewSkipKey(key) // the leader's promotion enqueues it there
	}
	wait, again := r.source.Step(ctx, owner, r.lastSignal())
	if !again {
		return nil
	}
	return backoff.Requeue(fault.Throttledf(reasonNextStep, max(wait, atLeast), "the next step is not due"))
}

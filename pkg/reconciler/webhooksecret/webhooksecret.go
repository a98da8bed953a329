// SPDX-License-Identifier: Apache-2.0

// Package webhooksecret copies the webhook secrets that Repositories name, and the App's, to
// Secrets that receivers may read (docs/adr/0016). It neither lists nor watches the Secrets of
// teams: it reads each by name, when a receiver requests it and from time to time.
package webhooksecret

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	pkgreconciler "knative.dev/pkg/reconciler"

	copies "github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// readEvery is how often each Secret is read, whether it is used or not: within the 30 s of
	// S31.
	readEvery = 20 * time.Second
	// readsPerSecond bounds these reads for each controller, which has a client of its own for
	// them. Up to 200 Secrets are read every readEvery, 1,000 every 100 s. Beyond 200 a change is
	// noticed within 30 s only if the secret is used, or if a delivery does not match.
	readsPerSecond = 10
	// requestsPerSecond bounds the reads that receivers request. It is more than the 40 deliveries
	// a second that a receiver takes.
	requestsPerSecond = 50
	// firstsPerSecond bounds the reads of Secrets that have no copy yet.
	firstsPerSecond = 50
	// moreAfter is the wait before what exceeded these budgets, or failed, is retried.
	moreAfter = time.Second
	// maxFailures is how often the first read of a Secret may fail, moreAfter apart, before a shard
	// counts as complete without it. An outage is over by then, or also prevents the read of the
	// shard. One Secret that cannot be decrypted must not keep new receivers from becoming ready.
	maxFailures = 60
	// maxConditions is how many conditions one pass writes, with two calls each: a second or two in
	// all. The next pass writes more.
	maxConditions = 50
	// readsAtOnce is how many Secrets of a shard are read at the same time, and readsWithin bounds
	// the reads of a pass. A read takes some milliseconds.
	readsAtOnce = 20
	readsWithin = 2 * time.Second
	// reconcileTimeout ends one pass. The next one reads what is left.
	reconcileTimeout = 20 * time.Second
)

// Reconciler implements knative's controller.Reconciler and reconciler.LeaderAware. Its keys are
// the shards.
type Reconciler struct {
	pkgreconciler.LeaderAwareFuncs

	namespace  string
	secrets    typedcorev1.SecretsGetter
	names      *names
	conditions conditions
	clock      clock.PassiveClock
	logger     *zap.SugaredLogger
	// regular, onRequest and firsts limit the reads of readEvery, those that receivers requested,
	// and those of secrets without a copy.
	regular, onRequest, firsts flowcontrol.PassiveRateLimiter
	wake                       func(shard types.NamespacedName, after time.Duration)

	mu     sync.Mutex
	shards [copies.Shards]memory
}

// memory is what a controller knows of a shard that it has copied. Without it everything is read
// again.
type memory struct {
	requested map[string]bool
	read      map[string]time.Time
	// failed counts the failures in a row to read a secret, or to write the conditions of its
	// Repositories.
	failed map[string]int
	// states are for the metric.
	states map[string]state
}

var (
	_ controller.Reconciler     = (*Reconciler)(nil)
	_ pkgreconciler.LeaderAware = (*Reconciler)(nil)
)

func newReconciler(c clock.PassiveClock) *Reconciler {
	return &Reconciler{
		clock:     c,
		regular:   flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(readsPerSecond, readsPerSecond, c),
		onRequest: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(requestsPerSecond, requestsPerSecond, c),
		firsts:    flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(firstsPerSecond, firstsPerSecond, c),
	}
}

func (r *Reconciler) key(shard int) types.NamespacedName {
	return types.NamespacedName{Namespace: r.namespace, Name: copies.ShardName(shard)}
}

// keys returns the keys of all shards.
func (r *Reconciler) keys() []types.NamespacedName {
	all := make([]types.NamespacedName, 0, copies.Shards)
	for shard := range copies.Shards {
		all = append(all, r.key(shard))
	}
	return all
}

// Request schedules a new copy of the secrets with these IDs. It ignores secrets that no Repository
// names, and those of shards that another process leads.
func (r *Reconciler) Request(ids []string) {
	for _, id := range ids {
		shard := copies.ShardOf(id)
		wanted, _ := r.names.in(shard)
		if _, known := wanted[id]; !known || !r.IsLeaderFor(r.key(shard)) {
			continue
		}
		r.mu.Lock()
		if r.shards[shard].requested == nil {
			r.shards[shard].requested = map[string]bool{}
		}
		r.shards[shard].requested[id] = true
		r.mu.Unlock()
		r.wake(r.key(shard), 0)
	}
}

// Reconcile updates one shard. If a read fails, the existing copy stays.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	_, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("key of a shard: %w", err)
	}
	shard, ours := copies.ShardNumber(name)
	if !ours {
		return nil
	}
	if !r.IsLeaderFor(r.key(shard)) {
		r.remember(shard, memory{})
		return controller.NewSkipKey(key) // the leader's promotion enqueues it there
	}
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	known := r.take(shard)
	p := &pass{Reconciler: r, memory: known}
	p.wanted, p.incomplete = r.names.in(shard)
	more, err := p.reconcile(ctx, name)
	if err != nil {
		r.remember(shard, known)
		return fmt.Errorf("copying webhook secrets: %w", err)
	}
	r.remember(shard, p.next)
	r.wake(r.key(shard), r.nextPass(p.next, more))
	return nil
}

// take returns the memory of a shard, with the requests to handle now.
func (r *Reconciler) take(shard int) memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.shards[shard]
	r.shards[shard].requested = nil
	return known
}

// remember replaces the memory of a shard, and keeps requests that came meanwhile.
func (r *Reconciler) remember(shard int, known memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.shards[shard].requested {
		if known.requested == nil {
			known.requested = map[string]bool{}
		}
		known.requested[id] = true
	}
	r.shards[shard] = known
}

// nextPass returns the wait before the next pass of a shard: until the first of its secrets is due.
// A shard without secrets has passes, too: it may be deleted, and a new receiver is not ready
// without it.
func (r *Reconciler) nextPass(known memory, more bool) time.Duration {
	if more {
		return moreAfter
	}
	next := readEvery
	for _, at := range known.read {
		next = min(next, max(moreAfter, readEvery-r.clock.Since(at)))
	}
	return next
}

// states counts the secrets of the shards that this process leads.
func (r *Reconciler) states() map[state]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := map[state]int{copied: 0, missing: 0, refused: 0, unread: 0}
	for _, shard := range r.shards {
		for _, s := range shard.states {
			count[s]++
		}
	}
	return count
}

// get returns a Secret; nil if the API server says that there is none.
func (r *Reconciler) get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret, err := r.secrets.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, name, fault.FromKube(fault.VerbRead, err))
	}
	return secret, nil
}

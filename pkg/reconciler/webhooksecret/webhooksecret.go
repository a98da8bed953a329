// SPDX-License-Identifier: Apache-2.0

// Package webhooksecret copies the webhook secrets that Repositories name, and the App's, to where
// the receivers read them (docs/adr/0016). No Secret of a team is listed or watched: each is read
// by its name, when a receiver asks for it and from time to time.
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
	// lookEvery is how soon each Secret is read again, whether it is used or not: within the 30 s
	// of S31.
	lookEvery = 20 * time.Second
	// looksPerSecond bounds these reads for each controller, which has a client of its own for
	// them. Up to 200 Secrets are so read every lookEvery, 1,000 every 100 s: beyond 200 it takes a
	// use, or a delivery that does not fit, to notice a change within 30 s.
	looksPerSecond = 10
	// asksPerSecond bounds the reads that receivers ask for: more than the 40 deliveries a second
	// that a receiver takes.
	asksPerSecond = 50
	// firstsPerSecond bounds those of Secrets that have no copy yet.
	firstsPerSecond = 50
	// moreAfter is when what had no room in these budgets, or failed, is tried again.
	moreAfter = time.Second
	// maxFailures is how often the first read of a Secret may fail, moreAfter apart, until a shard
	// is complete without it: an outage is over by then or keeps the shard from being read, too,
	// and one Secret that cannot be decrypted must not keep every new receiver from becoming ready.
	maxFailures = 60
	// maxTold is how many Repositories one look at a shard tells of their secrets: two calls each,
	// a second or two in all. The rest is told in the next.
	maxTold = 50
	// readsAtOnce is how many Secrets of a shard are read at the same time, and readsWithin bounds
	// the reads of a look. A read takes some milliseconds.
	readsAtOnce = 20
	readsWithin = 2 * time.Second
	// reconcileTimeout ends one look at a shard. What was not read by then is read in the next.
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
	// looks, answers and firsts are for lookEvery, for what is asked for, and for what has no copy
	// yet.
	looks, answers, firsts flowcontrol.PassiveRateLimiter
	wake                   func(shard types.NamespacedName, after time.Duration)

	mu     sync.Mutex
	shards [copies.Shards]memory
}

// memory is what a controller knows of a shard that it has copied. It is advice: without it
// everything is read again.
type memory struct {
	asked map[string]bool
	read  map[string]time.Time
	// failed is how often in a row a secret could not be read, or its Repositories not be told of
	// it.
	failed map[string]int
	// states are what became of each secret, for the metric.
	states map[string]state
}

var (
	_ controller.Reconciler     = (*Reconciler)(nil)
	_ pkgreconciler.LeaderAware = (*Reconciler)(nil)
)

func newReconciler(c clock.PassiveClock) *Reconciler {
	return &Reconciler{
		clock:   c,
		looks:   flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(looksPerSecond, looksPerSecond, c),
		answers: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(asksPerSecond, asksPerSecond, c),
		firsts:  flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(firstsPerSecond, firstsPerSecond, c),
	}
}

func (r *Reconciler) key(shard int) types.NamespacedName {
	return types.NamespacedName{Namespace: r.namespace, Name: copies.ShardName(shard)}
}

// keys are all there are.
func (r *Reconciler) keys() []types.NamespacedName {
	all := make([]types.NamespacedName, 0, copies.Shards)
	for shard := range copies.Shards {
		all = append(all, r.key(shard))
	}
	return all
}

// Ask has the copies of these IDs made again, as far as they are of secrets that a Repository names
// and this process leads their shard.
func (r *Reconciler) Ask(ids []string) {
	for _, id := range ids {
		shard := copies.ShardOf(id)
		wanted, _ := r.names.in(shard)
		if _, known := wanted[id]; !known || !r.IsLeaderFor(r.key(shard)) {
			continue
		}
		r.mu.Lock()
		if r.shards[shard].asked == nil {
			r.shards[shard].asked = map[string]bool{}
		}
		r.shards[shard].asked[id] = true
		r.mu.Unlock()
		r.wake(r.key(shard), 0)
	}
}

// Reconcile brings one shard up to date. A failing read keeps what was copied before.
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
		return controller.NewSkipKey(key) // being promoted enqueues it again
	}
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	known := r.take(shard)
	p := &pass{Reconciler: r, memory: known}
	p.wanted, p.incomplete = r.names.in(shard)
	more, err := p.run(ctx, name)
	if err != nil {
		r.remember(shard, known)
		return fmt.Errorf("copying webhook secrets: %w", err)
	}
	r.remember(shard, p.next)
	r.wake(r.key(shard), r.nextLook(p.next, more))
	return nil
}

// take returns what is known of a shard, with the asks that are to be answered now.
func (r *Reconciler) take(shard int) memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.shards[shard]
	r.shards[shard].asked = nil
	return known
}

// remember replaces what is known of a shard; what was asked for meanwhile stays asked for.
func (r *Reconciler) remember(shard int, known memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.shards[shard].asked {
		if known.asked == nil {
			known.asked = map[string]bool{}
		}
		known.asked[id] = true
	}
	r.shards[shard] = known
}

// nextLook is how soon a shard is looked at again: when the first of its secrets is due. One that
// has none is looked at, too: somebody may have deleted it, and a receiver that starts is not ready
// without it.
func (r *Reconciler) nextLook(known memory, more bool) time.Duration {
	if more {
		return moreAfter
	}
	next := lookEvery
	for _, at := range known.read {
		next = min(next, max(moreAfter, lookEvery-r.clock.Since(at)))
	}
	return next
}

// states counts what became of the secrets of the shards that this process leads.
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

// get returns a Secret, nil when there certainly is none.
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

// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"sync"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"
)

// Led is a reconciler that works on what it was promoted for, and skips every other key.
type Led interface {
	controller.Reconciler
	reconciler.LeaderAware
}

// Queue is the reconciler to give to knative instead of one that works under leases. Knative then knows of no election, and runs it as
// if it led everything: it promotes it once for all keys, as soon as the caches are filled.
type Queue struct {
	// Enqueue enqueues a key if it is one of the bucket's, e.g. controller.Impl.MaybeEnqueueBucketKey. It is needed.
	Enqueue func(reconciler.Bucket, types.NamespacedName)

	reconciler Led
	name       string
	election   *Election
	log        *zap.SugaredLogger
	once       sync.Once

	mu    sync.RWMutex
	terms []*term
}

var _ Led = (*Queue)(nil)

// NewQueue returns the queue of a reconciler in the election of the context; without one the reconciler leads everything. The
// name is part of the names of its leases.
func NewQueue(ctx context.Context, r Led, name string) *Queue {
	election, _ := ctx.Value(key{}).(*Election)
	return &Queue{reconciler: r, name: name, election: election, log: logging.FromContext(ctx)}
}

// Promote is called by knative when the caches are filled: the election begins.
func (q *Queue) Promote(all reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
	if q.election == nil {
		return q.reconciler.Promote(all, enqueue)
	}
	q.once.Do(func() {
		if err := q.election.run(q); err != nil {
			q.log.Fatalw("Standing for leases", "queue", q.name, "error", err) // a wrong configuration
		}
	})
	return nil
}

// Demote implements reconciler.LeaderAware; knative does not call it.
func (q *Queue) Demote(all reconciler.Bucket) {
	if q.election == nil {
		q.reconciler.Demote(all)
	}
}

// Reconcile lets the reconciler work on a key, and keeps its lease meanwhile.
func (q *Queue) Reconcile(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err == nil {
		if t := q.termOf(types.NamespacedName{Namespace: namespace, Name: name}); t != nil {
			defer t.begin()()
		}
	}
	return q.reconciler.Reconcile(ctx, key)
}

// Holds tells whether the lease of a key is this process's, as far as it knows: also while it ends, until it gives the lease back.
// A process that was paused learns only afterwards that it lost it.
func (q *Queue) Holds(key types.NamespacedName) bool {
	if q.election == nil {
		return true
	}
	t := q.termOf(key)
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holds
}

func (q *Queue) add(t *term) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.terms = append(q.terms, t)
}

// termOf is nil before the election has begun.
func (q *Queue) termOf(key types.NamespacedName) *term {
	q.mu.RLock()
	defer q.mu.RUnlock()
	for _, t := range q.terms {
		if t.bucket.Has(key) {
			return t
		}
	}
	return nil
}

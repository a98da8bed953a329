// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"slices"
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

// Queue is the reconciler to give to knative instead of one that works under leases. Knative then
// knows of no election, and runs it as if it led everything: it promotes it once for all keys, as
// soon as the caches are filled.
type Queue struct {
	// Enqueue enqueues a key if it is one of the bucket's, e.g.
	// controller.Impl.MaybeEnqueueBucketKey. It is needed.
	Enqueue func(reconciler.Bucket, types.NamespacedName)

	reconciler Led
	name       string
	only       []types.NamespacedName // empty: any
	election   *Election
	log        *zap.SugaredLogger
	once       sync.Once

	mu    sync.RWMutex
	terms []*term
}

var _ Led = (*Queue)(nil)

// NewQueue returns the queue of a reconciler in the election of the context; without one the
// reconciler leads everything. The name is part of the names of its leases. Only are all the keys
// that it ever has, if that is known: nobody stands for a lease without a key, each of which would
// cost the API server a write every two seconds.
func NewQueue(ctx context.Context, r Led, name string, only ...types.NamespacedName) *Queue {
	election, _ := ctx.Value(key{}).(*Election)
	return &Queue{reconciler: r, name: name, only: only, election: election, log: logging.FromContext(ctx)}
}

// needed are the buckets that have a key.
func (q *Queue) needed(all []reconciler.Bucket) []reconciler.Bucket {
	if len(q.only) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(b reconciler.Bucket) bool { return !slices.ContainsFunc(q.only, b.Has) })
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

// Holds reports whether the lease of a key is this process's: also while it ends, until it gives
// the lease back, and not after a pause in which another one may have got it.
func (q *Queue) Holds(key types.NamespacedName) bool {
	if q.election == nil {
		return true
	}
	t := q.termOf(key)
	return t != nil && t.holds()
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

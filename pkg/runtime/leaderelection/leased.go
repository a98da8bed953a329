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

// Led is a reconciler that skips keys of buckets for which it was not promoted.
type Led interface {
	controller.Reconciler
	reconciler.LeaderAware
}

// LeasedReconciler wraps a reconciler that works under leases, for knative. Knative does not know
// of the election: it promotes it once for all keys, as soon as the caches are filled.
type LeasedReconciler struct {
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

var _ Led = (*LeasedReconciler)(nil)

// NewLeasedReconciler wraps a reconciler in the election of the context. Without an election,
// the reconciler leads everything. The name is part of the names of its leases. only are all the
// keys that it ever has, if they are known. There is no election for a lease without a key, because
// each lease costs the API server a write every two seconds.
func NewLeasedReconciler(ctx context.Context, r Led, name string, only ...types.NamespacedName) *LeasedReconciler {
	election, _ := ctx.Value(key{}).(*Election)
	return &LeasedReconciler{reconciler: r, name: name, only: only, election: election, log: logging.FromContext(ctx)}
}

// needed returns the buckets that have a key.
func (q *LeasedReconciler) needed(all []reconciler.Bucket) []reconciler.Bucket {
	if len(q.only) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(b reconciler.Bucket) bool { return !slices.ContainsFunc(q.only, b.Has) })
}

// Promote is called by knative when the caches are filled. It starts the election.
func (q *LeasedReconciler) Promote(all reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
	if q.election == nil {
		return q.reconciler.Promote(all, enqueue)
	}
	q.once.Do(func() {
		if err := q.election.run(q); err != nil {
			q.log.Fatalw("Taking part in the election failed", "queue", q.name, "error", err) // a wrong configuration
		}
	})
	return nil
}

// Demote implements reconciler.LeaderAware; knative does not call it.
func (q *LeasedReconciler) Demote(all reconciler.Bucket) {
	if q.election == nil {
		q.reconciler.Demote(all)
	}
}

// Reconcile calls the reconciler for a key. The lease of the key is not released meanwhile.
func (q *LeasedReconciler) Reconcile(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err == nil {
		if t := q.termOf(types.NamespacedName{Namespace: namespace, Name: name}); t != nil {
			defer t.begin()()
		}
	}
	return q.reconciler.Reconcile(ctx, key)
}

// Holds reports whether the lease of a key is this process's. It is true until the lease is
// released, and false after a pause in which another process may have got it.
func (q *LeasedReconciler) Holds(key types.NamespacedName) bool {
	if q.election == nil {
		return true
	}
	t := q.termOf(key)
	return t != nil && t.holds()
}

func (q *LeasedReconciler) add(t *term) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.terms = append(q.terms, t)
}

// termOf returns the term of a key, nil before the election has started.
func (q *LeasedReconciler) termOf(key types.NamespacedName) *term {
	q.mu.RLock()
	defer q.mu.RUnlock()
	for _, t := range q.terms {
		if t.bucket.Has(key) {
			return t
		}
	}
	return nil
}

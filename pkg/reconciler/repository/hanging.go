// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
)

const (
	// tookLong is longer than any reconcile takes while the API server responds. A team's admission
	// webhook may hang at each write of a status, and all teams share the workers.
	tookLong = 3 * time.Second
	// After such a reconcile its namespace has at most hangingWorkers for hangsFor. A key that
	// finds no worker is woken when one is free, and after hangRetry in case the wake is lost.
	hangsFor       = 5 * time.Minute
	hangingWorkers = 2
	hangRetry      = time.Minute
)

// hanging are the namespaces whose Repositories take long. The zero value is empty.
type hanging struct {
	mu sync.Mutex
	of map[string]*slow
}

// slow is the state of a namespace with a running reconcile, or with slow ones.
type slow struct {
	working int
	until   time.Time
	waiting []types.NamespacedName // the keys that wait for a worker, each once
	queued  map[types.NamespacedName]bool
}

// withWorker does the work of a reconcile, unless the namespace is slow and uses its workers.
func (r *Reconciler) withWorker(owner types.NamespacedName, work func() error) error {
	began := r.clock.Now()
	if !r.hanging.enter(owner, began) {
		return backoff.Requeue(
			fault.Throttledf(fault.ReasonBusy, hangRetry,
				"namespace %s responds slowly, and all workers that it may use are busy", owner.Namespace),
		)
	}
	defer func() {
		if next, waits := r.hanging.leave(owner.Namespace, began, r.clock.Now()); waits {
			r.wake(next, 0)
		}
	}()
	return work()
}

func (h *hanging) enter(owner types.NamespacedName, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[string]*slow{}
	}
	p := h.of[owner.Namespace]
	if p == nil {
		p = &slow{queued: map[types.NamespacedName]bool{}}
		h.of[owner.Namespace] = p
	}
	if p.working < hangingWorkers || !now.Before(p.until) {
		p.working++
		return true
	}
	if !p.queued[owner] {
		p.waiting, p.queued[owner] = append(p.waiting, owner), true
	}
	return false
}

// leave returns the next key that waits for a worker.
func (h *hanging) leave(namespace string, began, now time.Time) (next types.NamespacedName, waits bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.of[namespace]
	p.working--
	if now.Sub(began) >= tookLong {
		p.until = now.Add(hangsFor)
	}
	if len(p.waiting) > 0 {
		next, waits = p.waiting[0], true
		p.waiting = slices.Delete(p.waiting, 0, 1)
		delete(p.queued, next)
	}
	if p.working == 0 && len(p.waiting) == 0 && !now.Before(p.until) {
		delete(h.of, namespace)
	}
	return next, waits
}

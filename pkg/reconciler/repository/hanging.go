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
	// tookLong is what no reconcile takes where the API server answers: a team's admission webhook
	// may hang at each status of its Repositories, and slots and claims of all teams wait for the
	// same workers.
	tookLong = 3 * time.Second
	// hangsFor is how long a namespace in which one took so long has no more than hangingWorkers.
	// Whoever finds none is woken when one is free, and after hangRetry if that is lost.
	hangsFor       = 5 * time.Minute
	hangingWorkers = 2
	hangRetry      = time.Minute
)

// hanging are the namespaces whose Repositories take long. The zero value knows none.
type hanging struct {
	mu sync.Mutex
	of map[string]*pace
}

// pace is of a namespace that has a worker, or hangs.
type pace struct {
	working int
	until   time.Time
	line    []types.NamespacedName // who has found no worker, each once
	stands  map[types.NamespacedName]bool
}

// inTurn does the work of a reconcile, unless the namespace hangs and has its workers.
func (r *Reconciler) inTurn(owner types.NamespacedName, work func() error) error {
	began := r.clock.Now()
	if !r.hanging.enter(owner, began) {
		return backoff.Requeue(
			fault.Throttledf(fault.ReasonBusy, hangRetry, "namespace %s answers slowly, and has its workers", owner.Namespace),
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
		h.of = map[string]*pace{}
	}
	p := h.of[owner.Namespace]
	if p == nil {
		p = &pace{stands: map[types.NamespacedName]bool{}}
		h.of[owner.Namespace] = p
	}
	if p.working < hangingWorkers || !now.Before(p.until) {
		p.working++
		return true
	}
	if !p.stands[owner] {
		p.line, p.stands[owner] = append(p.line, owner), true
	}
	return false
}

// leave returns who is next in line.
func (h *hanging) leave(namespace string, began, now time.Time) (next types.NamespacedName, waits bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.of[namespace]
	p.working--
	if now.Sub(began) >= tookLong {
		p.until = now.Add(hangsFor)
	}
	if len(p.line) > 0 {
		next, waits = p.line[0], true
		p.line = slices.Delete(p.line, 0, 1)
		delete(p.stands, next)
	}
	if p.working == 0 && len(p.line) == 0 && !now.Before(p.until) {
		delete(h.of, namespace)
	}
	return next, waits
}

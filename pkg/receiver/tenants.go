// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// tenants share the places for deliveries by the namespaces of their Repositories: while the API server is slow, one whose
// deliveries are many would hold all of them. A namespace may hold as many as are free, so alone it gets half of them, a second
// one a quarter, and there is always room for one that has none. The zero value is ready.
type tenants struct {
	mu    sync.Mutex
	of    map[string]int // deliveries that are there, by namespace
	there int            // of all
	// waiting are the deliveries that have a place and waited for it, or wait for one.
	waiting int
}

// await is enter for a delivery that it has refused: a burst of pushes is over in a moment. It waits for at most slotWait, and
// not at all when maxQueued do. Those that have waited for a lane come many at once, and are counted there.
func (t *tenants) await(ctx context.Context, namespace string, counted bool) (leave func(), err error) {
	queue := t.queue
	if counted {
		queue = func(int) bool { return true }
	}
	if leave, err = t.enter(namespace); err == nil || !queue(1) {
		return leave, err
	}
	ctx, cancel := context.WithTimeout(ctx, slotWait)
	defer cancel()
	tick := time.NewTicker(contendedEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			queue(-1)
			return nil, err
		}
		var out func()
		if out, err = t.enter(namespace); err == nil {
			return func() { out(); queue(-1) }, nil
		}
	}
}

// queue counts who waits; false is that nobody more may.
func (t *tenants) queue(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 && t.waiting >= maxQueued {
		return false
	}
	t.waiting += n
	return true
}

// enter takes a place for a verified delivery. Without an error, leave must be called once. The error is Transient: the
// namespace has too many deliveries at once.
func (t *tenants) enter(namespace string) (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if its := t.of[namespace]; its >= maxInFlight-t.there {
		return nil, fault.Transientf("NamespaceBusy", "%d deliveries of Repositories in namespace %s are handled, and %d of others", its, namespace, t.there-its)
	}
	if t.of == nil {
		t.of = map[string]int{}
	}
	t.of[namespace]++
	t.there++
	return func() { t.leave(namespace) }, nil
}

func (t *tenants) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.there--
	if t.of[namespace]--; t.of[namespace] == 0 {
		delete(t.of, namespace)
	}
}

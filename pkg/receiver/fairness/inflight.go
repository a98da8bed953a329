// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// MaxInFlight is how many deliveries are handled at once: with the slots of large bodies it
	// bounds the memory. Who has not sent the whole body yet is none of them.
	MaxInFlight = 160
	// maxQueued is how many verified deliveries may wait, or have waited, for a place of their
	// namespace, beside those of laneBytes. They hold none of the others and are of at most 1 MiB
	// each.
	maxQueued = 64
	// PlaceWait is how long a delivery waits for room before it is answered 503.
	PlaceWait = 2 * time.Second
	// lookEvery is how often a delivery that waits for a place looks for one.
	lookEvery = 100 * time.Millisecond
)

// Places are shared for deliveries by the namespaces of their Repositories: while the API server is
// slow, one whose deliveries are many would hold all of them. A namespace may hold as many as are
// free, so alone it gets half of them, a second one a quarter, and there is always room for one
// that has none. The zero value is ready.
type Places struct {
	mu    sync.Mutex
	of    map[string]int // deliveries that are there, by namespace
	there int            // of all
	// waiting are the deliveries that have a place and waited for it, or wait for one.
	waiting int
}

// Await is Enter for a delivery that it has refused: a burst of pushes is over in a moment. It
// waits for at most PlaceWait, and not at all when maxQueued do. Those that have waited for a lane
// come many at once, and are counted there.
func (p *Places) Await(ctx context.Context, namespace string, counted bool) (leave func(), err error) {
	queue := p.queue
	if counted {
		queue = func(int) bool { return true }
	}
	if leave, err = p.Enter(namespace); err == nil || !queue(1) {
		return leave, err
	}
	ctx, cancel := context.WithTimeout(ctx, PlaceWait)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			queue(-1)
			return nil, err
		}
		var out func()
		if out, err = p.Enter(namespace); err == nil {
			return func() { out(); queue(-1) }, nil
		}
	}
}

// queue counts who waits; false is that nobody more may.
func (p *Places) queue(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > 0 && p.waiting >= maxQueued {
		return false
	}
	p.waiting += n
	return true
}

// Enter takes a place for a verified delivery. Without an error, leave must be called once. The
// error is Transient: the namespace has too many deliveries at once.
func (p *Places) Enter(namespace string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if its := p.of[namespace]; its >= MaxInFlight-p.there {
		return nil, fault.Transientf(
			"NamespaceBusy",
			"%d deliveries of Repositories in namespace %s are handled, and %d of others",
			its,
			namespace,
			p.there-its,
		)
	}
	if p.of == nil {
		p.of = map[string]int{}
	}
	p.of[namespace]++
	p.there++
	return func() { p.leave(namespace) }, nil
}

// Open is how many deliveries have a place, and how many of them waited for it, or wait for one.
func (p *Places) Open() (there, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.there, p.waiting
}

func (p *Places) leave(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.there--
	if p.of[namespace]--; p.of[namespace] == 0 {
		delete(p.of, namespace)
	}
}

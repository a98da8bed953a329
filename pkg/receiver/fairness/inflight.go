// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// MaxInFlight is how many deliveries are handled at once. Together with the slots of large
	// bodies it bounds the memory. A delivery whose body is still arriving does not count.
	MaxInFlight = 160
	// maxWaiting is how many verified deliveries may wait, or have waited, for their namespace's
	// in-flight limit, in addition to those of waitingBytes. They hold nothing that others need,
	// and each is at most 1 MiB.
	maxWaiting = 64
	// InFlightWait is how long a delivery waits for an in-flight limit before it is answered 503.
	InFlightWait = 2 * time.Second
	// retryEvery is how often a waiting delivery tries again.
	retryEvery = 100 * time.Millisecond
)

// InFlight limits how many deliveries are in flight for each namespace. Without it, one namespace
// with many deliveries would use the whole limit while the API server is slow. A namespace may have
// as many in flight as are left for others: alone it gets half of MaxInFlight, a second one gets a
// quarter, and a namespace that has none is always admitted. The zero value is ready.
type InFlight struct {
	mu          sync.Mutex
	byNamespace map[string]int
	total       int
	// waiting counts the deliveries that wait, and those in flight that have waited.
	waiting int
}

// Wait is Acquire for a delivery that Acquire has refused: a burst of pushes is usually over within
// a moment. It waits for at most InFlightWait, and not at all while maxWaiting deliveries do.
// A delivery that has waited for a recording slot is counted there (counted) and always waits: many
// of those arrive at the same moment.
func (f *InFlight) Wait(ctx context.Context, namespace string, counted bool) (release func(), err error) {
	count := f.countWaiting
	if counted {
		count = func(int) bool { return true }
	}
	if release, err = f.Acquire(namespace); err == nil || !count(1) {
		return release, err
	}
	ctx, cancel := context.WithTimeout(ctx, InFlightWait)
	defer cancel()
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			count(-1)
			return nil, err
		}
		var acquired func()
		if acquired, err = f.Acquire(namespace); err == nil {
			return func() { acquired(); count(-1) }, nil
		}
	}
}

// countWaiting adds n to the waiting deliveries. It reports whether there may be that many.
func (f *InFlight) countWaiting(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > 0 && f.waiting >= maxWaiting {
		return false
	}
	f.waiting += n
	return true
}

// Acquire admits a verified delivery. Without an error, release must be called once. The error is
// Transient: too many deliveries of the namespace are in flight.
func (f *InFlight) Acquire(namespace string) (release func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.byNamespace[namespace]; n >= MaxInFlight-f.total {
		return nil, fault.Transientf(reasonNamespaceBusy,
			"%d deliveries for Repositories of namespace %s are in flight, and %d for others", n, namespace, f.total-n)
	}
	if f.byNamespace == nil {
		f.byNamespace = map[string]int{}
	}
	f.byNamespace[namespace]++
	f.total++
	return func() { f.release(namespace) }, nil
}

// Count returns how many deliveries are in flight, and how many wait or have waited.
func (f *InFlight) Count() (inFlight, waiting int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total, f.waiting
}

func (f *InFlight) release(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total--
	if f.byNamespace[namespace]--; f.byNamespace[namespace] == 0 {
		delete(f.byNamespace, namespace)
	}
}

// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// repositorySlots is how many deliveries of one Repository are recorded at once, and pullSlots
	// how many for its pull requests, which untrusted users can cause. An API server that takes
	// 10 ms for a create records 100 pull requests in a second.
	repositorySlots = 4
	pullSlots       = 1
	// heavySlots is how many bodies over heavyBytes of one namespace are recorded at once, and how
	// many for its pull requests.
	heavySlots = 1
	// A delivery waits for a slot for slotWait in all. For the last overflowWait of that it may
	// take one of overflowSlots. After slotWait it proceeds anyway.
	slotWait      = 3 * time.Second
	overflowWait  = 500 * time.Millisecond
	overflowSlots = 3
	// recordTime is left for a slow create: no delivery waits for a slot when only InFlightWait and
	// recordTime remain until its deadline.
	recordTime = 2 * time.Second
	// waitingBytes is what the bodies of the deliveries that wait, or have waited, take together.
	// A delivery that exceeds it does not wait. Nor does one that has a slot for its large body.
	waitingBytes = 32 << 20
)

// RepositoryLimit limits how many deliveries of one Repository are recorded at once. When many
// arrive together, the API server needs the same time for all of them, and every other call would
// wait as long. The zero value is ready.
type RepositoryLimit struct {
	mu      sync.Mutex
	byKey   map[SlotKey]*semaphore
	waiting int // bytes of the deliveries that wait, or have waited
}

// SlotKey names slots that deliveries share, and how many there are.
type SlotKey struct {
	name  string
	slots int
}

type semaphore struct {
	slots chan struct{}
	users int // how many hold a slot or wait for one
}

// SlotKeyOf returns the slots that a delivery needs one of.
func SlotKeyOf(spec *v1alpha1.GitEventSpec, body []byte) SlotKey {
	repository, pull := spec.Repository.Namespace+"/"+spec.Repository.Name, spec.Trigger == v1alpha1.TriggerPullRequest
	switch {
	case pull && len(body) > heavyBytes: // an untrusted user's description may be that long
		return SlotKey{spec.Repository.Namespace + " pulls", heavySlots}
	case len(body) > heavyBytes:
		return SlotKey{spec.Repository.Namespace, heavySlots}
	case pull:
		return SlotKey{repository + " pulls", pullSlots}
	}
	return SlotKey{repository, repositorySlots}
}

// Acquire takes a slot; release must be called once. When none is free, it calls waits and then
// waits for a slot, later for an overflow slot, and after slotWait returns anyway: the API server
// is slow then, and one more call does no more harm. Size is the size of the body, which counts
// from the wait until the release.
func (l *RepositoryLimit) Acquire(ctx context.Context, key SlotKey, size int, waits func()) (release func()) {
	if release = l.wait(key, 0); release != nil {
		return release
	}
	if !l.countWaiting(size) {
		return func() {}
	}
	waits()
	for _, next := range []struct {
		key   SlotKey
		limit time.Duration
	}{{key, slotWait - overflowWait}, {SlotKey{key.name + " overflow", overflowSlots}, overflowWait}} {
		limit := next.limit
		if end, ends := ctx.Deadline(); ends {
			limit = min(limit, time.Until(end)-InFlightWait-recordTime)
		}
		if slot := l.wait(next.key, limit); slot != nil {
			return func() { slot(); l.countWaiting(-size) }
		}
	}
	return func() { l.countWaiting(-size) }
}

// Waiting returns the bytes of the deliveries that wait, or have waited.
func (l *RepositoryLimit) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// countWaiting adds size to the bytes of waiting deliveries. It reports whether they may be that
// many.
func (l *RepositoryLimit) countWaiting(size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if size > 0 && l.waiting+size > waitingBytes {
		return false
	}
	l.waiting += size
	return true
}

// wait waits for a slot until the limit. It returns nil when none became free.
func (l *RepositoryLimit) wait(key SlotKey, limit time.Duration) (release func()) {
	semaphore := l.use(key)
	release = func() {
		<-semaphore.slots
		l.leave(key, semaphore)
	}
	select {
	case semaphore.slots <- struct{}{}:
		return release
	default:
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case semaphore.slots <- struct{}{}:
		return release
	case <-timer.C:
		l.leave(key, semaphore)
		return nil
	}
}

func (l *RepositoryLimit) use(key SlotKey) *semaphore {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = map[SlotKey]*semaphore{}
	}
	used, known := l.byKey[key]
	if !known {
		used = &semaphore{slots: make(chan struct{}, key.slots)}
		l.byKey[key] = used
	}
	used.users++
	return used
}

func (l *RepositoryLimit) leave(key SlotKey, used *semaphore) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if used.users--; used.users == 0 {
		delete(l.byKey, key)
	}
}

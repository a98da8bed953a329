// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"maps"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// RetryAfter is how soon an event retries that could not acquire the guard.
const RetryAfter = time.Second

// CrashLoopGuard stops an event that crashes the controller during planning (for example, out of
// memory) from crashing it again and again. It records planning attempts that may have crashed a
// process, and plans the suspects among the events one at a time. See docs/adr/0018.
type CrashLoopGuard struct {
	// Inherited reports whether another process may have worked on an event.
	Inherited func(*v1alpha1.GitEvent) bool

	mu sync.Mutex
	// suspect is held while a suspect is planned: an event with an unfinished attempt.
	suspect sync.Mutex
	// backoffs is until when the suspects of a namespace let others go first: its Git service may
	// hang, and the next attempt comes at once.
	backoffs map[string]time.Time
	// known is how many unfinished attempts an event really has, if the end of one could not be
	// recorded.
	known map[string]int32
}

// Acquire admits one suspect. After its release, the suspects of its namespace back off for as long
// as that took, at least a second. release is nil if the event must wait.
func (b *CrashLoopGuard) Acquire(a *attempt.Attempt) (release func()) {
	namespace, began := a.Event.Spec.Repository.Namespace, a.Clock.Now()
	b.mu.Lock()
	rests := began.Before(b.backoffs[namespace])
	b.mu.Unlock()
	if rests || !b.suspect.TryLock() {
		return nil
	}
	return func() {
		b.suspect.Unlock()
		b.mu.Lock()
		defer b.mu.Unlock()
		now := a.Clock.Now()
		maps.DeleteFunc(b.backoffs, func(_ string, until time.Time) bool { return until.Before(now) })
		if b.backoffs == nil {
			b.backoffs = map[string]time.Time{}
		}
		b.backoffs[namespace] = now.Add(max(now.Sub(began), RetryAfter))
	}
}

// Forget drops what is true only while no other process leads: that process may have started an
// attempt, too, and crashed.
func (b *CrashLoopGuard) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = nil
}

// Unfinished returns how many planning attempts of an event have no end.
func (b *CrashLoopGuard) Unfinished(event *v1alpha1.GitEvent) int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, found := b.known[event.Name]; found {
		return min(known, event.Status.Begun)
	}
	return event.Status.Begun
}

// Ended records the end of an attempt. The guard remembers it until the event is planned, because
// the status may not be written.
func (b *CrashLoopGuard) Ended(a *attempt.Attempt, before int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.Planned() {
		delete(b.known, a.Event.Name)
		return
	}
	if b.known == nil {
		b.known = map[string]int32{}
	}
	a.Event.Status.Begun, b.known[a.Event.Name] = before, before
}

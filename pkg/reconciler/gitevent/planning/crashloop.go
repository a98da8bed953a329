// SPDX-License-Identifier: Apache-2.0

// Package planning keeps an event that ends the process that plans it from doing so for ever. See
// docs/adr/0018.
package planning

import (
	"maps"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// Again is how soon whoever was not let in tries again.
const RetryAfter = time.Second

// Beginnings tells whose beginning is recorded, and lets the suspects in one by one.
type CrashLoopGuard struct {
	// Inherited reports whether another process may have worked on an event.
	Inherited func(*v1alpha1.GitEvent) bool

	mu sync.Mutex
	// suspect is held while an event is planned that has a beginning without an end.
	suspect sync.Mutex
	// rests is until when the suspects of a namespace let others in that have waited: its Git
	// service may hang, and the next attempt comes at once.
	backoffs map[string]time.Time
	// known is how many beginnings without an end an event really has, if the end of one could not
	// be recorded.
	known map[string]int32
}

// Enter lets one suspect in. Once it was in, those of its namespace rest for as long as that took,
// a second at least. Release is nil if it has to wait.
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

// Forget drops what is true only while no other process leads: it may have begun as well, and died.
func (b *CrashLoopGuard) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = nil
}

// Of is how many beginnings of an event have no end.
func (b *CrashLoopGuard) Unfinished(event *v1alpha1.GitEvent) int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, found := b.known[event.Name]; found {
		return min(known, event.Status.Begun)
	}
	return event.Status.Begun
}

// Ended takes a beginning back. It is remembered until the plan is: the status may not be written.
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

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
func (g *CrashLoopGuard) Acquire(a *attempt.Attempt) (release func()) {
	namespace, began := a.Event.Spec.Repository.Namespace, a.Clock.Now()
	g.mu.Lock()
	rests := began.Before(g.backoffs[namespace])
	g.mu.Unlock()
	if rests || !g.suspect.TryLock() {
		return nil
	}
	return func() {
		g.suspect.Unlock()
		g.mu.Lock()
		defer g.mu.Unlock()
		now := a.Clock.Now()
		maps.DeleteFunc(g.backoffs, func(_ string, until time.Time) bool { return until.Before(now) })
		if g.backoffs == nil {
			g.backoffs = map[string]time.Time{}
		}
		g.backoffs[namespace] = now.Add(max(now.Sub(began), RetryAfter))
	}
}

// Forget drops what is true only while no other process leads: that process may have started an
// attempt, too, and crashed.
func (g *CrashLoopGuard) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = nil
}

// Unfinished returns how many planning attempts of an event have no end.
func (g *CrashLoopGuard) Unfinished(event *v1alpha1.GitEvent) int32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if known, found := g.known[event.Name]; found {
		return min(known, event.Status.Begun)
	}
	return event.Status.Begun
}

// Ended records the end of an attempt. The guard remembers it until the event is planned, because
// the status may not be written.
func (g *CrashLoopGuard) Ended(a *attempt.Attempt, before int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.Planned() {
		delete(g.known, a.Event.Name)
		return
	}
	if g.known == nil {
		g.known = map[string]int32{}
	}
	a.Event.Status.Begun, g.known[a.Event.Name] = before, before
}

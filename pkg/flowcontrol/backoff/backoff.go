// SPDX-License-Identifier: Apache-2.0

// Package backoff decides when a key of a workqueue is reconciled again. Requeue turns the errors
// of a reconcile into the error for knative. Timers remember which steps of a key have failed: the
// workqueue has one backoff for a key, and each step needs its own (docs/adr/0012).
package backoff

import (
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// MinWait and MaxWait bound what Next returns after a failure. MaxWait is the workqueue's maximum;
// below MinWait, the workqueue's backoff is enough.
const (
	MinWait = time.Second
	MaxWait = 1000 * time.Second
)

// Step is one thing that a reconcile tries.
type Step struct {
	// Name is the kind of step, e.g. "report".
	Name string
	// Of is the object of the step, e.g. the name of a PipelineRun.
	Of string
	// Version identifies the content, e.g. the digest of the report. Another version is tried at
	// once.
	Version string
}

// Timers store when failing steps are tried again. A step waits for as long as it has failed, at
// most MaxWait; or for the workqueue's backoff after as many failures, if that is shorter. Timers
// are advice: a process that knows nothing tries every step once. Safe for concurrent use.
type Timers struct {
	mu   sync.Mutex
	keys map[string]map[id]timer
}

type id struct{ name, of string }

type timer struct {
	version string
	tries   int
	since   time.Time
	due     time.Time // not tried before
	latest  time.Time // when the key is requeued
}

// New returns Timers without failures.
func New() *Timers { return &Timers{keys: map[string]map[id]timer{}} }

// Left returns for how long a step is not retried; 0 if it may be tried now.
func (t *Timers) Left(key string, step Step, now time.Time) time.Duration {
	known, found := t.of(key, step)
	if !found {
		return 0
	}
	return max(0, known.due.Sub(now))
}

// of returns the timer of a step that has failed in this version.
func (t *Timers) of(key string, step Step) (known timer, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, found = t.keys[key][id{step.Name, step.Of}]
	return known, found && known.version == step.Version
}

// Failing returns for how long a step has failed; 0 if it has not, or is tried for the first time.
func (t *Timers) Failing(key string, step Step, now time.Time) time.Duration {
	known, found := t.of(key, step)
	if !found {
		return 0
	}
	return now.Sub(known.since)
}

// Postpone prevents that a step is tried again for a time, because its result would be the same.
func (t *Timers) Postpone(key string, step Step, wait time.Duration, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys[key] == nil {
		t.keys[key] = map[id]timer{}
	}
	t.keys[key][id{step.Name, step.Of}] = timer{
		version: step.Version,
		since:   now,
		due:     now.Add(wait),
		latest:  now.Add(wait),
	}
}

// Note stores the result of a step. An error that is retried with a backoff is a failure; an error
// with its own time is not. An error with fault.ReasonBusy changes nothing, because the step was
// not tried.
func (t *Timers) Note(key string, step Step, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := id{step.Name, step.Of}
	if f := fault.Of(err); f != nil && f.Reason == fault.ReasonBusy {
		return
	}
	if !Retried(err) {
		delete(t.keys[key], at)
		t.tidy(key)
		return
	}
	known, found := t.keys[key][at]
	if !found || known.version != step.Version {
		known = timer{version: step.Version, since: now}
	}
	known.tries++
	wait := min(now.Sub(known.since), MaxWait)
	if after, beside := KnownWait(Requeue(err)); beside { // a part of the step has a time of its own
		wait = min(wait, after)
	}
	known.due, known.latest = now.Add(min(wait, backoff(known.tries))), now.Add(max(wait, MinWait))
	if t.keys[key] == nil {
		t.keys[key] = map[id]timer{}
	}
	t.keys[key][at] = known
}

// backoff returns how long the workqueue waits after so many failures in a row (client-go's
// default: 5 ms, doubled each time). A step never waits longer, however long each try takes.
func backoff(tries int) time.Duration {
	const first, doublings = 5 * time.Millisecond, 18 // more than MaxWait
	return first << min(tries-1, doublings)
}

// Next returns how long it is until the first step of a key is tried again; false if none waits. A
// time that has passed does not count: the reconcile did not need that step.
func (t *Timers) Next(key string, now time.Time) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var next time.Duration
	for _, known := range t.keys[key] {
		if left := known.latest.Sub(now); left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	return next, next > 0
}

// Forget forgets a key.
func (t *Timers) Forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.keys, key)
}

func (t *Timers) tidy(key string) {
	if len(t.keys[key]) == 0 {
		delete(t.keys, key)
	}
}

// Len returns the number of keys that have a failing step.
func (t *Timers) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.keys)
}

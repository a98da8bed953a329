// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"math"
	"time"

	"knative.dev/pkg/controller"
)

// queue plays knative's workqueue over the world's clock: a key has one time, the earlier one of
// two, and a failure waits 5 ms, twice as long after each one, and at most 1000 s.
type queue struct {
	env      *env
	at       map[string]time.Time
	failures map[string]int
}

func newQueue(w *env) *queue {
	q := &queue{env: w, at: map[string]time.Time{}, failures: map[string]int{}}
	w.woken = q.after
	for _, e := range w.events() {
		q.after(e.Name, 0)
	}
	return q
}

func (q *queue) after(event string, wait time.Duration) {
	at := q.env.clock.Now().Add(max(0, wait))
	if known, found := q.at[event]; !found || at.Before(known) {
		q.at[event] = at
	}
}

// run reconciles what is due until a moment, which the clock then shows.
func (q *queue) run(until time.Time) {
	q.env.t.Helper()
	for {
		event, at := "", until
		for key, due := range q.at {
			if due.Before(at) || due.Equal(at) && key < event {
				event, at = key, due
			}
		}
		if event == "" {
			q.env.clock.SetTime(until)
			return
		}
		if at.After(q.env.clock.Now()) {
			q.env.clock.SetTime(at)
		}
		delete(q.at, event)
		q.took(event)
	}
}

func (q *queue) took(event string) {
	_, err := q.env.reconcileEvent(event)
	timer, after := controller.IsRequeueKey(err)
	switch {
	case err == nil:
		delete(q.failures, event)
	case timer:
		q.after(event, after)
	default:
		backoff := min(float64(5*time.Millisecond)*math.Pow(2, float64(q.failures[event])), float64(1000*time.Second))
		q.failures[event]++
		q.after(event, time.Duration(backoff))
	}
}

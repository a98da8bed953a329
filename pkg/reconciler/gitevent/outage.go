// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"sync"
	"time"

	"knative.dev/pkg/controller"
)

const (
	// minRetry and maxRetry are between what an event is tried again at the latest; the second is the workqueue's own.
	minRetry = time.Second
	maxRetry = 1000 * time.Second
)

// outages remembers since when events fail that this process leads. The workqueue counts attempts, also those that it has
// not asked for: each run of an event wakes it when it starts and when it ends, and with a few runs the next attempt would
// come long after what another one waits for is back. Losing this state costs time, never truth.
type outages struct {
	mu    sync.Mutex
	since map[string]time.Time
}

func newOutages() *outages { return &outages{since: map[string]time.Time{}} }

// again returns how long after a failure the event is to be tried again at the latest: after as much time as it has failed
// for (spec/resilience.md, "Time bounds"). It returns false if the event does not fail.
func (o *outages) again(event string, err error, now time.Time) (time.Duration, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	timer, _ := controller.IsRequeueKey(err)
	if err == nil || timer || controller.IsSkipKey(err) {
		delete(o.since, event)
		return 0, false
	}
	since, failing := o.since[event]
	if !failing {
		since = now
		o.since[event] = now
	}
	return min(max(now.Sub(since), minRetry), maxRetry), true
}

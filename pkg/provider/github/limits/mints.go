// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Mints caches GitHub's limit of an App's mints. Each run needs one, and an event may have
// hundreds: after one refusal the others must not try one by one.
type Mints struct {
	mu    sync.Mutex
	fault *fault.Error
	until time.Time
}

// Limited returns the limit, with the same message each time, until it ends.
func (l *Mints) Limited(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.until.Sub(now)
	if l.fault == nil || left <= 0 {
		return nil
	}
	again := *l.fault
	again.RetryAfter = left
	return &again
}

// Learn records a limit because of which a mint was refused.
func (l *Mints) Learn(err error, now time.Time) {
	f := fault.Of(err)
	if f == nil || f.Class != fault.Throttled || f.RetryAfter <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault, l.until = f, now.Add(f.RetryAfter)
}

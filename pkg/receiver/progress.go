// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"sync"
	"time"
)

// progress knows since when deliveries are being handled. The zero value is ready.
type progress struct {
	mu    sync.Mutex
	since map[*time.Time]struct{}
}

// begin counts a delivery until end is called.
func (p *progress) begin() (end func()) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since == nil {
		p.since = map[*time.Time]struct{}{}
	}
	p.since[&now] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.since, &now)
	}
}

// longest is how long the oldest delivery has been handled, zero when there is none.
func (p *progress) longest() (took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for start := range p.since {
		took = max(took, time.Since(*start))
	}
	return took
}

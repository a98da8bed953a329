// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"sync"
	"time"
)

// progress knows when each delivery in flight was started. The zero value is ready.
type progress struct {
	mu      sync.Mutex
	started map[*time.Time]struct{}
}

// start adds a delivery until end is called.
func (p *progress) start() (end func()) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started == nil {
		p.started = map[*time.Time]struct{}{}
	}
	p.started[&now] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.started, &now)
	}
}

// longest returns how long the oldest delivery has been in flight, zero if there is none.
func (p *progress) longest() (took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for start := range p.started {
		took = max(took, time.Since(*start))
	}
	return took
}

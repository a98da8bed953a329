// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"sync"
	"time"
)

const (
	// MissReads is how often the Git service must not show what a web address of its own leads to
	// before the author is told (L4): a replica that lags answers 404 for what was just pushed.
	NotFoundReads = 3
	// MissApart is how long after each other these reads are at least.
	NotFoundInterval = 3 * time.Second
	// maxMisses bounds what is remembered; forgetting costs time.
	maxMisses = 10_000
)

// Misses counts what was not found. It is advice: a process that knows nothing counts from the
// start. The zero value is ready.
type NotFound struct {
	mu   sync.Mutex
	seen map[string]miss
}

type miss struct {
	reads int
	last  time.Time
}

// believed notes that something was not found now, and reports whether that was so often enough.
func (m *NotFound) confirmed(what string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.seen) >= maxMisses || m.seen == nil {
		m.seen = map[string]miss{}
	}
	known := m.seen[what]
	if known.reads < NotFoundReads && (known.reads == 0 || now.Sub(known.last) >= NotFoundInterval) {
		known.reads, known.last = known.reads+1, now
		m.seen[what] = known
	}
	return known.reads >= NotFoundReads
}

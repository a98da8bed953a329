// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"sync"
	"time"
)

const (
	// NotFoundReads is how often the Git service must not show what one of its own web addresses
	// leads to before the author is told (L4): a replica that lags answers 404 for a recent push.
	NotFoundReads = 3
	// NotFoundInterval is the least time between these reads.
	NotFoundInterval = 3 * time.Second
	// maxMisses bounds what is remembered; forgetting costs time.
	maxMisses = 10_000
)

// NotFound counts reads that found nothing. It is only a hint: a new process counts from the start.
// The zero value is empty.
type NotFound struct {
	mu   sync.Mutex
	seen map[string]miss
}

type miss struct {
	reads int
	last  time.Time
}

// confirmed records that something was not found now, and reports whether that has happened often
// enough.
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

// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

const (
	// NotFoundReads is how often the Git service must not show what a web address of its own leads
	// to before the author is told (L4): a replica that lags answers 404 for what was just pushed.
	NotFoundReads = 3
	// NotFoundInterval is how long after each other these reads are at least.
	NotFoundInterval = 3 * time.Second
)

// NotFound counts reads that found nothing. It is only a hint: a new process counts from the start.
// The zero value is empty.
type NotFound struct {
	seen recent.Map[string, miss]
}

type miss struct {
	reads int
	last  time.Time
}

// confirmed records that something was not found now, and reports whether that has happened often
// enough.
func (n *NotFound) confirmed(what string, now time.Time) bool {
	known := n.seen.Update(what, func(known miss, _ bool) (miss, bool) {
		if known.reads < NotFoundReads && (known.reads == 0 || now.Sub(known.last) >= NotFoundInterval) {
			known.reads, known.last = known.reads+1, now
		}
		return known, true
	})
	return known.reads >= NotFoundReads
}

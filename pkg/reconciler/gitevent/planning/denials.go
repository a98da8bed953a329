// SPDX-License-Identifier: Apache-2.0

// Package planning remembers for a while what Git services have answered. It is advice: a process
// that knows nothing asks.
package planning

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// DenialLife is how long somebody counts as one who may not after the Git service has said so
// (S7): what a stranger does again and again is asked for once. Whoever is given the right
// meanwhile waits no longer than that, and not at all if the delivery is sent again.
const DenialLife = 2 * time.Minute

// Denials remembers who may not do what where. Who may is never remembered: a right that was taken
// away is gone at once. It is advice: a process that knows nothing asks. The zero value is ready.
type Denials struct {
	seen recent.Map[string, denial]
}

// denial is a no: since when, and why if that is more than that somebody has no such right.
type denial struct {
	at  time.Time
	why error
}

// holds reports whether the answer was no so shortly before that it is not asked for again, and
// why.
func (d *Denials) holds(what string, now time.Time) (held bool, why error) {
	found, held := d.seen.Get(what)
	return held && now.Sub(found.at) < DenialLife, found.why
}

// note remembers that the answer was no.
func (d *Denials) note(what string, why error, now time.Time) {
	d.seen.Put(what, denial{now, why})
}

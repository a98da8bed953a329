// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// DenialLife is how long a denial of the Git service is cached (S7): what an untrusted user does
// again and again costs one question. A user who is given the right meanwhile waits no longer than
// that, and not at all if the delivery is redelivered.
const DenialLife = 2 * time.Minute

// Denials caches who may not do what where. It never caches who may: a revoked right takes effect
// at once. It is only a hint: a process with an empty cache asks. The zero value is empty.
type Denials struct {
	seen recent.Map[string, denial]
}

// denial is a cached denial: since when, and why if there is a special reason.
type denial struct {
	at  time.Time
	why error
}

// holds reports whether a denial is recent enough that the question is not asked again, and its
// reason.
func (d *Denials) holds(what string, now time.Time) (held bool, why error) {
	found, held := d.seen.Get(what)
	return held && now.Sub(found.at) < DenialLife, found.why
}

// note caches a denial.
func (d *Denials) note(what string, why error, now time.Time) {
	d.seen.Put(what, denial{now, why})
}

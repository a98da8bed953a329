// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// RefusalBelieved is how long an attempt that was refused is not repeated for other events.
const RefusalLife = 20 * time.Second

// attempt is what a Git service is asked with: what it refuses for one repository it may allow for
// another.
type attempt struct {
	secret     types.NamespacedName
	content    content
	repository types.NamespacedName
}

// refusals knows which attempts the Git services have just refused.
type refusals struct {
	all recent.Map[attempt, refusal]
}

type refusal struct {
	fault *fault.Error
	until time.Time
}

// note remembers for a while that the Git service refused an attempt.
func (r *refusals) note(a attempt, f *fault.Error, now time.Time) {
	r.all.Put(a, refusal{fault: f, until: now.Add(RefusalLife)})
}

// of returns why the Git service has just refused an attempt, nil if it has not.
func (r *refusals) of(a attempt, now time.Time) *fault.Error {
	if known, found := r.all.Get(a); found && now.Before(known.until) {
		return known.fault
	}
	return nil
}

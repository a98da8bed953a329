// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// RefusalLife is how long a refused login is not repeated for other events.
const RefusalLife = 20 * time.Second

// attempt is a login. A Git service may refuse it for one repository and accept it for another.
type attempt struct {
	secret     types.NamespacedName
	content    content
	repository types.NamespacedName
}

// refusals stores which logins the Git services have just refused.
type refusals struct {
	all recent.Map[attempt, refusal]
}

type refusal struct {
	fault *fault.Error
	until time.Time
}

// note stores for a while that the Git service refused a login.
func (r *refusals) note(a attempt, f *fault.Error, now time.Time) {
	r.all.Put(a, refusal{fault: f, until: now.Add(RefusalLife)})
}

// of returns why the Git service has just refused a login, nil if it has not.
func (r *refusals) of(a attempt, now time.Time) *fault.Error {
	if known, found := r.all.Get(a); found && now.Before(known.until) {
		return known.fault
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// LateReports is how long after a takeover a post of the previous holder may still take effect: the
// fence (10 s), the longest call (30 s), and five seconds for the Git service to apply what it has
// received.
const LateReports = 45 * time.Second

// intend records that this process is about to post a check. It may take over at once from another
// process whose post may be under way, so that the check is not delayed. A later look-up finds the
// duplicate (I-8). first is true if this is the first intent of all.
func (s *Step) intend(a *attempt.Attempt, check *v1alpha1.Check) (first bool) {
	first = !check.Intent
	if !first && check.Holder != s.Identity {
		s.posts.Take(postOf(a, check.Key), "") // other processes have posted, too
		if s.rules(a).lateMatters(check) {
			check.RecheckAt = at(a.Clock.Now().Add(s.late()))
		}
	}
	check.Holder, check.Intent = s.Identity, true
	return first
}

// postOf names a check among those of all events.
func postOf(a *attempt.Attempt, key string) string { return string(a.Event.UID) + "/" + key }

// rules returns those for an event.
func (s *Step) rules(a *attempt.Attempt) rules {
	service, _ := provider.For(s.Providers, &a.Event.Spec)
	return rules{
		reopens: service.Reopens,
		pending: a.Event.Status.Disposition == v1alpha1.DispositionPending,
	}
}

// rechecks returns the final checks that must be looked up once more now.
func (s *Step) rechecks(a *attempt.Attempt) []status.Check {
	var due []status.Check
	for _, check := range a.Desired() {
		if s.rules(a).due(check, a.Accepted(check.Key), a.Clock.Now()) {
			due = append(due, check)
		}
	}
	return due
}

// UntilRecheck returns the wait for the next look-up of a final check, nil if there is none. It
// ignores a look-up that was due when the reconcile began. If that one could not be made, the
// report waits, and has a time of its own.
func (s *Step) UntilRecheck(a *attempt.Attempt) error {
	check := s.rules(a).next(a.Event.Status.Checks, a.Started)
	if check == nil {
		return nil
	}
	left := max(time.Second, check.RecheckAt.Sub(a.Clock.Now()))
	return fault.Throttledf(
		fault.ReasonBusy, left, "looking for a late duplicate of %q before the event is settled", check.Name)
}

func (s *Step) late() time.Duration {
	if s.Late > 0 {
		return s.Late
	}
	return LateReports
}

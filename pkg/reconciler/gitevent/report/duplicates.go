// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// LateReports is how long after a takeover the post of the holder before may still land: the fence
// (10 s), the longest call (30 s), and five seconds for the Git service to apply what it has
// received.
const LateReports = 45 * time.Second

// intend records that this process is about to post a check. Taking over from another process whose
// post may be under way is allowed at once, so that nobody waits for the check; the look-up that
// finds a duplicate is made later (I-8).
//
// It reports whether this is the first intent of all.
func (s *Step) intend(a *attempt.Attempt, check *v1alpha1.Check) (first bool) {
	first = !check.Intent
	if !first && check.Holder != s.Identity {
		s.posts.Take(postOf(a, check.Key), "") // others have posted, too
		if s.lateMatters(a, check) {
			s.mayLand(a, check)
		}
	}
	check.Holder, check.Intent = s.Identity, true
	return first
}

// postOf names a check among those of all events.
func postOf(a *attempt.Attempt, key string) string { return string(a.Event.UID) + "/" + key }

// lateMatters reports whether a post of this check that lands after another one shows: its first
// one as a second check, and any but a conclusion where what lands late reopens a check.
func (s *Step) lateMatters(a *attempt.Attempt, check *v1alpha1.Check) bool {
	return check.ID == "" || s.Providers[a.Event.Spec.Provider].Reopens && !check.Concluded
}

// mayLand notes that a post of this check may be applied after another one.
func (s *Step) mayLand(a *attempt.Attempt, check *v1alpha1.Check) {
	at := metav1.NewTime(a.Clock.Now().Add(s.late()))
	check.RecheckAt = &at
}

// final reports whether a check is not written again by itself: it has a conclusion, or asks for an
// approval. Of the latter a duplicate that lands late can be taken back only where a late report
// would also reopen a check; elsewhere it says the same.
func (s *Step) final(a *attempt.Attempt, check *v1alpha1.Check) bool {
	return check.Concluded ||
		a.Event.Status.Disposition == v1alpha1.DispositionPending && s.Providers[a.Event.Spec.Provider].Reopens
}

// rechecks are the final checks that are due to be looked up once more.
func (s *Step) rechecks(a *attempt.Attempt) []status.Check {
	var due []status.Check
	for _, check := range a.Desired() {
		accepted := a.Accepted(check.Key)
		if accepted == nil || !s.final(a, accepted) || accepted.RecheckAt == nil ||
			accepted.Accepted != status.Digest(check) {
			continue
		}
		if !a.Clock.Now().Before(accepted.RecheckAt.Time) {
			due = append(due, check)
		}
	}
	return due
}

// UntilRecheck is the wait for the next recheck of a final check, nil when there is none. One that
// was due when the reconcile began is not waited for here: if it could not be made, the report
// waits, and has its own time.
func (s *Step) UntilRecheck(a *attempt.Attempt) error {
	for i := range a.Event.Status.Checks {
		check := &a.Event.Status.Checks[i]
		if s.final(a, check) && check.RecheckAt != nil && check.RecheckAt.After(a.Began) {
			left := max(time.Second, check.RecheckAt.Sub(a.Clock.Now()))
			return fault.Throttledf(
				fault.ReasonBusy,
				left,
				"looking for a late duplicate of %q before the event is settled",
				check.Name,
			)
		}
	}
	return nil
}

func (s *Step) late() time.Duration {
	if s.Late > 0 {
		return s.Late
	}
	return LateReports
}

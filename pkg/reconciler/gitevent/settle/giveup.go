// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"context"
	"slices"
	"time"

	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// GoneLimit is how long reports wait for a deleted Repository, and so for its credentials: long
// enough to recreate it (E4).
const GoneLimit = 10 * time.Minute

// unreportable reports whether the results of runs are all that is left to report, and they cannot
// be reported: the Repository has been gone for GoneLimit and it alone named the credentials, or
// waiting is pointless for another reason. While a GitHub App's credentials work, reports are sent
// as usual.
func unreportable(a *attempt.Attempt) bool {
	wait := a.Waits.Of(v1alpha1.StepReport)
	if !a.Waits.IsCurrent(wait) || !a.Decided() || !a.Finished() {
		return false
	}
	return wait.Reason == credentials.ReasonRepositoryGone && a.Clock.Since(wait.Since.Time) >= GoneLimit ||
		a.Waits.ShouldGiveUp(wait)
}

// giveUpReports settles an event whose reports cannot be sent. Its condition Reported keeps the
// reason.
func (s *Step) giveUpReports(ctx context.Context, a *attempt.Attempt) error {
	checks, wait := len(a.Outstanding()), a.Waits.Of(v1alpha1.StepReport)
	logging.FromContext(ctx).Errorw("Reports are given up", "event", a.Event.Name, "checks", checks,
		"reason", wait.Reason, "message", wait.Message)
	open := slices.DeleteFunc(slices.Clone(a.Event.Status.Checks), func(c v1alpha1.Check) bool { return c.Concluded })
	if err := s.finish(ctx, a, leftover{open: open}); err != nil { // the sweep reports these checks when it can
		return err
	}
	s.Metrics.Dropped(ctx, checks)
	return nil
}

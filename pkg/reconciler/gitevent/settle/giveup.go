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

// GoneLimit is how long reports wait for a Repository that is gone, and with it the credentials for
// them: long enough to delete and create it again (E4).
const GoneLimit = 10 * time.Minute

// unreportable reports whether all that is left is to report the ends of runs, and nobody can: the
// Repository is gone for GoneLimit, and it alone named the credentials, or there is no hope for
// another reason. Where a GitHub App's still work, reports are sent as ever.
func unreportable(a *attempt.Attempt) bool {
	wait := a.Waits.Of(v1alpha1.StepReport)
	if !a.Waits.IsCurrent(wait) || !a.Decided() || !a.Finished() {
		return false
	}
	return wait.Reason == credentials.ReasonRepositoryGone && a.Clock.Since(wait.Since.Time) >= GoneLimit ||
		a.Waits.ShouldGiveUp(wait)
}

// drop settles an event whose reports nobody can send. Its condition Reported keeps the reason.
func (s *Step) giveUpReports(ctx context.Context, a *attempt.Attempt) error {
	checks, wait := len(a.Outstanding()), a.Waits.Of(v1alpha1.StepReport)
	logging.FromContext(ctx).Errorw("Reports are given up", "event", a.Event.Name, "checks", checks,
		"reason", wait.Reason, "message", wait.Message)
	open := slices.DeleteFunc(slices.Clone(a.Event.Status.Checks), func(c v1alpha1.Check) bool { return c.Concluded })
	if err := s.finish(ctx, a, leftover{open: open}); err != nil { // the sweep reports them when it can
		return err
	}
	s.Metrics.Dropped(ctx, checks)
	return nil
}

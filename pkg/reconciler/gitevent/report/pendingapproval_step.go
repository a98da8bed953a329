// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/approval"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// hold delays the report that an event waits for approval until the limiter allows it (S7). A
// report that the pull request shows already, or of a commit that is not its head any more, counts
// as accepted and is not sent.
func (s *Step) hold(ctx context.Context, a *attempt.Attempt, checks []status.Check) ([]status.Check, error) {
	if pr := a.Event.Spec.PullRequest; a.Event.Status.Disposition == v1alpha1.DispositionRuns && pr != nil &&
		pr.HeadProjectID != a.Event.Spec.Project.ID {
		s.Pending.Started(PendingReportOf(a.Event))
	}
	if a.Event.Status.Disposition != v1alpha1.DispositionPending || len(checks) != 1 || a.Accepted(checks[0].Key) != nil {
		return checks, nil // a report that was started continues: it may be shown already
	}
	report := PendingReportOf(a.Event)
	answer, wait := s.Pending.Decide(report, a.Clock.Now())
	if answer == Confirm {
		asked, spec := a.Clock.Now(), a.Event.Spec.DeepCopy()
		spec.SHA = report.Commit
		head, err := a.Git.Superseding(ctx, spec, true)
		if err != nil {
			return nil, err
		}
		s.Pending.Head(report, head, asked)
		answer, wait = s.Pending.Decide(report, a.Clock.Now())
	}
	switch answer {
	case Write:
		return checks, nil
	case Needless:
		entry(a, &checks[0]).Accepted = status.Digest(checks[0])
		return nil, nil
	}
	s.Metrics.Held(ctx)
	return nil, fault.Throttledf(fault.ReasonBusy, wait, "other pull requests that wait for approval are reported first")
}

// overtaken concludes the check of an event that waits for approval if another event has started
// its commit meanwhile. That event concludes the check, too, but this report may take effect after
// its own. So after each report it looks once more for what has started: either that event is
// planned by then and found, or it reports later and finds the check.
func (s *Step) overtaken(ctx context.Context, a *attempt.Attempt) error {
	if a.Event.Status.Disposition != v1alpha1.DispositionPending || a.Event.Status.Plan.StartedBy != "" {
		return nil
	}
	if check := a.Accepted(status.EventKey); check == nil || !check.Intent || check.Accepted == "" {
		return nil // nothing was sent
	}
	plan, startedBy := a.Event.Status.Plan, ""
	err := history.Each(ctx, s.Events, a.Event.Spec.Subjects(), func(event *v1alpha1.GitEvent) bool {
		if approval.Started(event, plan.HeadSHA) {
			startedBy = event.Name
		}
		return startedBy == ""
	})
	if err != nil || startedBy == "" {
		return err
	}
	plan.StartedBy = startedBy
	return s.Do(ctx, a)
}

// sent notes the outcome of sending the check of an event that waits for approval.
func (s *Step) sent(a *attempt.Attempt, err error) {
	if a.Event.Status.Disposition != v1alpha1.DispositionPending {
		return
	}
	report := PendingReportOf(a.Event)
	if err == nil {
		s.Pending.Written(report, a.Clock.Now())
	} else if f := fault.Of(err); f != nil && f.Class == fault.Throttled && f.Reason != fault.ReasonBusy {
		s.Pending.Limited(report, a.Clock.Now())
	}
}

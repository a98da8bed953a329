// SPDX-License-Identifier: Apache-2.0

// Package report is the step that sends an event's checks to the Git service.
package report

import (
	"context"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// Step sends the checks that the Git service should show and has not accepted. It records an intent
// before it sends anything, and what the Git service has accepted after that.
type Step struct {
	Providers map[string]provider.Provider
	Metrics   *metrics.Metrics
	// Identity is this process's name. No other process ever has it.
	Identity string
	// Late is how long after a takeover another process's post may take effect; 0 is the constant
	// LateReports.
	Late time.Duration
	// Pending limits the reports of events that wait for approval.
	Pending *PendingLimiter
	// Events are read live, for what else has happened to a commit that waits for approval.
	Events history.Lister
	posts  provider.Posts
	// clean caches what reply.Step.Clean has.
	clean recent.Map[string, bool]
}

// Do sends what the Git service has not accepted yet. What it sends is computed from the status
// alone, which has no error that occurred after a PipelineRun was created.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	if err := s.sendAll(ctx, a); err != nil {
		return err
	}
	return s.overtaken(ctx, a)
}

// sendAll sends the checks that are stale. It returns the first error that is worth a retry.
func (s *Step) sendAll(ctx context.Context, a *attempt.Attempt) error {
	v1alpha1.Fit(&a.Event.Status) // what is sent is what is stored
	stale, untried := s.toSend(a)
	stale, held := s.hold(ctx, a, stale)
	if len(stale) == 0 {
		return attempt.Merge([]error{held, untried})
	}
	stored := s.intendAll(a, stale)
	if err := s.store(ctx, a, stale); err != nil {
		return err
	}
	stored()
	client, failed := a.Git.Connect(ctx)
	proceed := a.Within(attempt.ShortLimit, a.Record.WriteOverdue)
	if failed != nil { // no call takes long
		proceed = a.Record.WriteOverdue
	}
	refused := 0
	faults := attempt.Each(ctx, attempt.Rotated(a.Waits.Of(v1alpha1.StepReport) != nil, stale), proceed,
		func(ctx context.Context, check status.Check) error {
			err := a.Waits.WithBackoff(reported(&check), func() error {
				if failed != nil { // for each check: none is sent before the next login
					return failed
				}
				return a.Traced(ctx, v1alpha1.StepReport,
					func(ctx context.Context) error { return s.put(ctx, a, client, check) })
			})
			s.sent(a, err)
			switch {
			case closed(err):
				return attempt.Stop(err)
			case !fault.Rejected(err) || attempt.Skipped(err):
				return err
			}
			a.Waits.BackOff(reported(&check)) // a refusal of one check says nothing about the others
			if refused++; refused < maxRefused {
				return err
			}
			return attempt.Stop(fault.Among(err, fault.Throttledf(fault.ReasonBusy,
				refusedFor(a.Waits.Of(v1alpha1.StepReport), a.Clock.Now()), "the Git service refuses each check")))
		})
	return attempt.Merge(append([]error{untried}, faults...))
}

// closed reports whether the next check would meet the same limit or the same missing permission.
func closed(err error) bool {
	f := fault.Of(err)
	return f != nil && f.Class != fault.Transient && !attempt.Skipped(err) && !fault.Rejected(err)
}

// maxRefused is how many checks the Git service may refuse in one reconcile. An event may have
// hundreds that it refuses for the same reason.
const maxRefused = 3

// The remaining checks wait for a quarter of the time for which checks have been refused, within
// these bounds. So a few checks that are refused at first do not delay the others, and hundreds do
// not exhaust the rate limit of all Repositories of an installation.
const (
	leastRefused = 3 * time.Second
	mostRefused  = 30 * time.Second
)

// refusedFor returns how long the remaining checks wait. wait is the recorded wait of the step.
func refusedFor(wait *v1alpha1.Wait, now time.Time) time.Duration {
	if wait == nil || wait.Reason != fault.ReasonGitRejected {
		return leastRefused
	}
	return min(mostRefused, max(leastRefused, now.Sub(wait.Since.Time)/4))
}

// maxAnnounced is the most checks whose intents are recorded with the plan. With more checks, other
// writes precede the last report anyway; and a process that takes over looks for each check that
// another one was about to send.
const maxAnnounced = 8

// RecordIntents records the intents of the checks that are sent next, in the write of the plan that
// starts their runs. A report that is held back has no intent: it may never be sent. The caller
// calls recorded after that write.
func (s *Step) RecordIntents(a *attempt.Attempt) (recorded func()) {
	checks := a.Outstanding()
	if a.Event.Status.Disposition == v1alpha1.DispositionPending || len(checks) > maxAnnounced {
		return func() {}
	}
	return s.intendAll(a, checks)
}

// intendAll records the intents of checks. The caller calls recorded once they are stored: it notes
// the checks of which this is the first intent of all.
func (s *Step) intendAll(a *attempt.Attempt, checks []status.Check) (recorded func()) {
	var first []string
	for i := range checks {
		if s.intend(a, entry(a, &checks[i])) {
			first = append(first, postOf(a, checks[i].Key))
		}
	}
	return func() {
		for _, post := range first {
			s.posts.Remember(post, "")
		}
	}
}

// store writes the status before checks are sent if one of them needs that.
func (s *Step) store(ctx context.Context, a *attempt.Attempt, checks []status.Check) error {
	for i := range checks {
		if needsWrite(&checks[i], a.Accepted(checks[i].Key), a.Record.Stored(checks[i].Key)) {
			return a.Record.Write(ctx)
		}
	}
	return a.Record.WriteOverdue(ctx)
}

// toSend returns the checks to send now, and an error that stands for those that have just failed.
func (s *Step) toSend(a *attempt.Attempt) (checks []status.Check, untried error) {
	for _, check := range append(a.Outstanding(), s.rechecks(a)...) {
		if early(a, check) {
			continue
		}
		if err := a.Waits.BackingOff(reported(&check)); err != nil {
			untried = err
			continue
		}
		checks = append(checks, check)
	}
	return checks, untried
}

// put sends one check and records the outcome.
func (s *Step) put(ctx context.Context, a *attempt.Attempt, client *provider.Client, check status.Check) error {
	if err := a.Record.Confirm(ctx); err != nil {
		return err
	}
	attempt.TraceReport(ctx, &check)
	accepted, rules := entry(a, &check), s.rules(a)
	m := message{
		head: git.Head{
			SHA: a.Event.Status.Plan.HeadSHA, Project: a.Event.Spec.Project,
			Ref: a.Event.Spec.HeadRef, PullRequest: a.Event.Spec.PullRequest,
		},
		check: check, accepted: *accepted, post: postOf(a, check.Key),
		late: rules.lateMatters(accepted),
	}
	fenced := provider.Fenced(ctx, func() error { return a.Record.Confirm(ctx) })
	next, err := s.send(fenced, client, m)
	now := a.Clock.Now()
	if err != nil {
		accepted.ID = next.ID
		if m.late && fault.Of(err).Unknown {
			accepted.RecheckAt = at(now.Add(s.late()))
		}
		return err
	}
	s.Metrics.Accepted(ctx, a.Event, *accepted, &check, now) // compares with what was accepted before
	*accepted = rules.accepted(next, now)
	return nil
}

// early reports whether a check is about a run whose creation was not tried yet: in a moment there
// is more to report.
func early(a *attempt.Attempt, check status.Check) bool {
	for i := range a.Event.Status.Runs {
		if run := &a.Event.Status.Runs[i]; run.Key() == check.Key {
			return run.Creatable() && a.Waits.Of(v1alpha1.StepCreate+run.Name) == nil
		}
	}
	return false
}

// entry returns the record of a check, and makes one on first use. Its name is the one that was
// sent last.
func entry(a *attempt.Attempt, check *status.Check) *v1alpha1.Check {
	if found := a.Accepted(check.Key); found != nil {
		found.Name = check.Name
		return found
	}
	a.Event.Status.Checks = append(a.Event.Status.Checks, v1alpha1.Check{Key: check.Key, Name: check.Name})
	return &a.Event.Status.Checks[len(a.Event.Status.Checks)-1]
}

// reported names the sending of one check. Another content of it is another version.
func reported(check *status.Check) backoff.Step {
	return backoff.Step{Name: v1alpha1.StepReport, Of: check.Key, Version: status.Digest(*check)}
}

// SPDX-License-Identifier: Apache-2.0

// Package report is the step that makes the Git service show what became of an event.
package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// Step takes what the Git service should show minus what it has accepted, and gives accepted
// checks: intents are recorded before anything is sent.
type Step struct {
	Providers map[string]provider.Provider
	Metrics   *metrics.Metrics
	// Identity is this process's name among all that ever ran.
	Identity string
	// Late is how long after a takeover another process's post may land; 0 is the constant
	// LateReports.
	Late time.Duration
	// Strangers are the reports of events that wait for approval.
	Strangers Reports
	// Events are read live, for what else has happened to a commit that waits for approval.
	Events history.Lister
	posts  provider.Posts
}

// Do sends what the Git service has not accepted yet. What it sends is computed from the status
// alone, which holds no error that arose after a PipelineRun was created.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	if err := s.sendAll(ctx, a); err != nil {
		return err
	}
	return s.overtaken(ctx, a)
}

// sendAll sends the checks that are stale. The error is the first that is worth a retry.
func (s *Step) sendAll(ctx context.Context, a *attempt.Attempt) error {
	v1alpha1.Fit(&a.Event.Status) // what is sent is what is stored
	stale, untried := s.toSend(a)
	stale, held := s.hold(ctx, a, stale)
	if len(stale) == 0 {
		return attempt.First([]error{held, untried})
	}
	stored := s.intendAll(a, stale)
	if err := s.store(ctx, a, stale); err != nil {
		return err
	}
	stored()
	client, failed := a.Git.Connect(ctx)
	spec := &a.Event.Spec
	head := git.Head{
		SHA:         a.Event.Status.Plan.HeadSHA,
		Project:     spec.Project,
		Ref:         spec.HeadRef,
		PullRequest: spec.PullRequest,
	}
	faults, refused := []error{untried}, 0
	over := a.Turn(attempt.ShortTurn)
	for _, check := range attempt.InTurn(a.Waits.Of(v1alpha1.StepReport) != nil, stale) {
		if err := over(); err != nil && failed == nil {
			return attempt.First(append(faults, err))
		}
		if err := a.Record.WriteMade(ctx, attempt.AfterCreate); err != nil {
			return attempt.First(append(faults, err))
		}
		err := a.Waits.Try(reported(&check), func() error {
			if failed != nil { // with each check: none of them is sent before the next login
				return failed
			}
			return a.Traced(
				ctx,
				v1alpha1.StepReport,
				func(ctx context.Context) error { return s.put(ctx, a, client, head, &check) },
			)
		})
		s.told(a, err)
		faults = append(faults, err)
		if closed(err) {
			break
		}
		if fault.Rejected(err) && !attempt.Skipped(err) { // what it has against one check says nothing of the others
			a.Waits.Rest(reported(&check))
			refused++
		}
		if refused == maxRefused {
			return attempt.First(
				append(faults, fault.Throttledf(fault.ReasonBusy, refusedFor(a), "the Git service refuses each check")),
			)
		}
	}
	return attempt.First(faults)
}

// closed reports whether the next check would meet the same limit or the same closed door.
func closed(err error) bool {
	f := fault.Of(err)
	return f != nil && f.Class != fault.Transient && !attempt.Skipped(err) && !fault.Rejected(err)
}

// maxRefused is how many checks the Git service may refuse in one reconcile: an event may have
// hundreds that it refuses for the same reason.
const maxRefused = 3

// The checks that are left wait for a quarter of the time for which some were refused: a few that
// are refused soon hold no others back, and hundreds do not use up what the Git service grants all
// the Repositories of an installation.
const (
	leastRefused = 3 * time.Second
	mostRefused  = 30 * time.Second
)

func refusedFor(a *attempt.Attempt) time.Duration {
	wait := a.Waits.Of(v1alpha1.StepReport)
	if wait == nil || wait.Reason != fault.ReasonGitRejected {
		return leastRefused
	}
	return min(mostRefused, max(leastRefused, a.Clock.Since(wait.Since.Time)/4))
}

// maxAnnounced is the most checks whose intents are recorded with the plan. Where there are more,
// other writes come before the last is sent anyway; and a process that takes over looks for each
// check that another one was about to send.
const maxAnnounced = 8

// Announce records the intents of the checks that are sent next, beside the plan that starts their
// runs. A report that is held back has none: it may never be sent.
//
// What it returns is called once they are recorded.
func (s *Step) Announce(a *attempt.Attempt) (recorded func()) {
	checks := a.Outstanding()
	if a.Event.Status.Disposition == v1alpha1.DispositionPending || len(checks) > maxAnnounced {
		return func() {}
	}
	return s.intendAll(a, checks)
}

// intendAll returns what notes, once it is recorded, for which of the checks this is the first
// intent of all.
func (s *Step) intendAll(a *attempt.Attempt, checks []status.Check) (recorded func()) {
	var first []string
	for i := range checks {
		if s.intend(a, entry(a, &checks[i])) {
			first = append(first, postOf(a, checks[i].Key))
		}
	}
	return func() {
		for _, post := range first {
			s.posts.Known(post, "")
		}
	}
}

// store writes the status before the checks are sent if something of it must be stored then: the
// intent of one, so that of two processes that both believe to lead only one sends it; or a
// verdict, which goes out only as it is recorded. That a run was created is no verdict, and is
// recorded with what its report is answered, unless it is there for long.
func (s *Step) store(ctx context.Context, a *attempt.Attempt, checks []status.Check) error {
	for i := range checks {
		stored := a.Record.Stored(checks[i].Key)
		if checks[i].Conclusion != "" || stored == nil || !equality.Semantic.DeepEqual(stored, a.Accepted(checks[i].Key)) {
			return a.Record.Write(ctx)
		}
	}
	return a.Record.WriteMade(ctx, attempt.AfterCreate)
}

// toSend are the checks to send now, and what stands for those that have just failed.
func (s *Step) toSend(a *attempt.Attempt) (checks []status.Check, untried error) {
	for _, check := range slices.DeleteFunc(append(a.Outstanding(), s.rechecks(a)...), func(check status.Check) bool { return early(a, check) }) {
		if err := a.Waits.FailedJustNow(reported(&check)); err != nil {
			untried = err
			continue
		}
		checks = append(checks, check)
	}
	return checks, untried
}

func (s *Step) put(
	ctx context.Context,
	a *attempt.Attempt,
	client *provider.Client,
	head git.Head,
	check *status.Check,
) error {
	if err := a.Record.Confirm(ctx); err != nil {
		return err
	}
	attempt.TraceReport(ctx, check)
	accepted := entry(a, check)
	matters := s.lateMatters(a, accepted)
	post := postOf(a, check.Key)
	sole := s.posts.Take(post, accepted.ID) && !check.Shared && accepted.RecheckAt == nil &&
		(check.Conclusion != "" || !accepted.Concluded)
	fenced := provider.Fenced(ctx, func() error { return a.Record.Confirm(ctx) })
	id, err := client.Put(fenced, head, accepted.ID, *check, sole)
	if id != "" {
		accepted.ID = id // also when only a duplicate could not be closed
	}
	if err != nil {
		if matters && fault.Of(err).Unknown {
			s.mayLand(a, accepted)
		}
		return fmt.Errorf("reporting %q: %w", check.Name, err)
	}
	if sole && check.Conclusion == "" { // little is said of one that has ended, and 10,000 are remembered
		s.posts.Known(post, id)
	}
	s.Metrics.Accepted(ctx, a.Event, *accepted, check, a.Clock.Now()) // by what was accepted until now
	s.note(a, accepted, check)
	return nil
}

// note records that a check was accepted.
func (s *Step) note(a *attempt.Attempt, accepted *v1alpha1.Check, check *status.Check) {
	accepted.Accepted, accepted.Concluded = status.Digest(*check), check.Conclusion != ""
	if s.final(a, accepted) && accepted.RecheckAt != nil && !a.Clock.Now().Before(accepted.RecheckAt.Time) {
		accepted.RecheckAt = nil // Put looked for duplicates when none could be under way any more
	}
}

// early tells that a check is about a run whose turn to be created has not come: in a moment there
// is more to say.
func early(a *attempt.Attempt, check status.Check) bool {
	for i := range a.Event.Status.Runs {
		if run := &a.Event.Status.Runs[i]; run.Name == check.Key {
			return attempt.Creatable(run) && a.Waits.Of(v1alpha1.StepCreate+run.Name) == nil
		}
	}
	return false
}

// entry returns the record of a check, made on first use. Its name is the one that was sent last.
func entry(a *attempt.Attempt, check *status.Check) *v1alpha1.Check {
	if found := a.Accepted(check.Key); found != nil {
		found.Name = check.Name
		return found
	}
	a.Event.Status.Checks = append(a.Event.Status.Checks, v1alpha1.Check{Key: check.Key, Name: check.Name})
	return &a.Event.Status.Checks[len(a.Event.Status.Checks)-1]
}

// reported is the step of sending one check. Another content of it is another version.
func reported(check *status.Check) backoff.Step {
	return backoff.Step{Name: v1alpha1.StepReport, Of: check.Key, Version: status.Digest(*check)}
}

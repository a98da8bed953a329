// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// sourcesLimit is how long annotations and comments are tried. The event is not settled before.
const sourcesLimit = 10 * time.Minute

// SendSources sends what a check has no room for, once the Git service shows the check with its
// conclusion and log: the source lines that logs name, as annotations, or the result as a comment.
// It changes no check. A permanent problem is reported once, and the rest is given up.
func (s *Step) SendSources(ctx context.Context, a *attempt.Attempt) error {
	due, err := s.unannotated(ctx, a)
	if len(due) == 0 || err != nil {
		return err
	}
	if err := s.inherit(a, due); err != nil {
		return err
	}
	if err := a.Record.Write(ctx); err != nil { // what is sent is what is stored
		return err
	}
	client, err := a.Git.Connect(ctx)
	return attempt.Merge(attempt.Each(ctx, due, a.Within(attempt.ShortLimit, a.Record.WriteOverdue),
		func(ctx context.Context, c annotated) error {
			return a.Waits.WithBackoff(backoff.Step{Name: v1alpha1.StepSources, Of: c.check.Key}, func() error {
				if err != nil { // no attempt is made before the next login
					return s.afterFailure(a, c, err)
				}
				return s.afterFailure(a, c, s.annotate(ctx, a, client, c))
			})
		}))
}

// annotated is a check that lacks annotations, or a comment if there are no lines.
type annotated struct {
	check  status.Check
	record *v1alpha1.Check
	lines  []v1alpha1.SourceLine
	// onlyEdit is true if no comment is created.
	onlyEdit bool
}

// unannotated returns the checks that the Git service shows with their logs, but without all of
// their annotations or without their comment.
func (s *Step) unannotated(ctx context.Context, a *attempt.Attempt) ([]annotated, error) {
	switch service, _ := provider.For(s.Providers, &a.Event.Spec); {
	case service.Annotates:
		return withLines(a), nil
	case service.Comments:
		return uncommented(ctx, a)
	}
	return nil, nil
}

// withLines returns the checks whose logs name source lines. Each attempt of a run has its own log,
// and only the last one has a result.
func withLines(a *attempt.Attempt) (due []annotated) {
	logs := map[string][]v1alpha1.SourceLine{}
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if run.Result == nil {
			continue
		}
		if lines := run.Result.Log.Sources(); len(lines) > 0 {
			logs[run.Key()] = lines
		}
	}
	if len(logs) == 0 {
		return nil
	}
	for _, check := range a.Desired() {
		if lines := logs[check.Key]; lines != nil {
			due = append(due, lacking(a, check, lines)...)
		}
	}
	return due
}

// lacking returns the check if the Git service shows it with its conclusion and nothing else.
func lacking(a *attempt.Attempt, check status.Check, lines []v1alpha1.SourceLine) []annotated {
	record := a.Accepted(check.Key)
	if record == nil || !record.Concluded || record.Annotated || record.Accepted != status.Digest(check) {
		return nil
	}
	return []annotated{{check: check, record: record, lines: lines}}
}

// inherit records this process as the holder of checks. It returns a wait if another process may
// have sent annotations a moment ago. Once these have taken effect, the Git service says how many a
// check has.
func (s *Step) inherit(a *attempt.Attempt, due []annotated) error {
	inherited := false
	for _, c := range due {
		inherited = inherited || c.record.Holder != s.Identity
		c.record.Holder = s.Identity
	}
	if !inherited {
		return nil
	}
	return fault.Throttledf(fault.ReasonNotConfirmed, s.late(),
		"another process may have sent annotations of %s a moment ago", a.Event.Name)
}

// annotate sends what the Git service does not have.
func (s *Step) annotate(ctx context.Context, a *attempt.Attempt, client *provider.Client, c annotated) error {
	if err := a.Record.Confirm(ctx); err != nil {
		return err
	}
	fenced := provider.Fenced(ctx, func() error { return a.Record.Confirm(ctx) })
	return a.Traced(fenced, v1alpha1.StepSources, func(ctx context.Context) error {
		if c.lines == nil {
			return s.comment(ctx, a, client, c)
		}
		return client.Annotate(ctx, c.record.ID, c.check, c.lines)
	})
}

// afterFailure records that a check has its annotations, or that it gets no more of them. It
// returns the error of an attempt that is repeated.
func (s *Step) afterFailure(a *attempt.Attempt, c annotated, err error) error {
	f := fault.Of(err)
	wait := a.Waits.Of(v1alpha1.StepSources)
	switch {
	case f == nil:
		c.record.Annotated = true
		return nil
	case f.Class == fault.Conflict || f.Reason == fault.ReasonBusy:
		return err
	case f.Class == fault.Operator, fault.Rejected(err),
		wait != nil && a.Clock.Since(wait.Since.Time) >= sourcesLimit:
		c.record.Annotated = true
		a.Waits.WarningEvent(f.Reason, c.what()+f.Advice())
		return nil
	case f.Unknown:
		return fault.Throttledf(f.Reason, s.late(), "%s", f.Message)
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package cancel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/supersede"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// notify annotates the events that happened before this one with what it cancels. It is repeated
// until each has the annotation. An event that closes its pull request does so once more at the end
// of the Window. Until then it stays unsettled, and new events find it in their cache.
func (s *Step) notify(ctx context.Context, a *attempt.Attempt) error {
	if a.Event.Status.Plan.Cancels == nil {
		return nil
	}
	left := s.left(a)
	err := a.Waits.WithBackoff(backoff.Step{Name: v1alpha1.StepNotify}, func() error { return s.tellAll(ctx, a) })
	if err = a.Waits.Update(v1alpha1.StepNotify, err); err != nil || left <= 0 {
		return err
	}
	return fault.Throttledf(fault.ReasonBusy, left, "looking for events of the closed pull request that are recorded late")
}

// left returns how much is left of the Window. It is 0 if the pull request was closed again since,
// because then the event of that close looks. Otherwise a user who opens and closes a pull request
// all the time would exhaust the Repository's unsettled events.
func (s *Step) left(a *attempt.Attempt) time.Duration {
	if !a.Event.Spec.Closes() || a.Event.Cancelled("") != nil {
		return 0
	}
	return a.Event.Status.Plan.Cancels.At.Add(s.window()).Sub(a.Clock.Now())
}

func (s *Step) tellAll(ctx context.Context, a *attempt.Attempt) error {
	cancels := a.Event.Status.Plan.Cancels
	var others []*v1alpha1.GitEvent
	err := history.EachOpen(ctx, s.Events, a.Event.Spec.Subjects(), func(other *v1alpha1.GitEvent) bool {
		if other.Name != a.Event.Name && concerns(a.Event.AsRecorded(), cancels, other) {
			others = append(others, history.Trimmed(other))
		}
		return true
	})
	if err != nil {
		return err
	}
	return attempt.Merge(attempt.Each(ctx, others, a.Within(attempt.ShortLimit, a.Record.Confirm),
		func(ctx context.Context, other *v1alpha1.GitEvent) error {
			return supersede.Annotate(ctx, s.Events, a.Event.Name, cancels, other)
		}))
}

// concerns reports whether an unsettled event must be annotated with what another one cancels.
func concerns(spec *v1alpha1.GitEventSpec, cancels *v1alpha1.Cancellation, other *v1alpha1.GitEvent) bool {
	return other.Needs(cancels) && !elsewhere(cancels, other) && ends(spec, cancels, other.AsRecorded())
}

// Finds reports whether an event would cancel anything now. something is true if an unsettled event
// may have something to stop, and running is true if it has started a run that is not finished. It
// asks the API server.
func (s *Step) Finds(
	ctx context.Context, event string, spec *v1alpha1.GitEventSpec, cancels *v1alpha1.Cancellation,
) (something, running bool, err error) {
	err = history.EachOpen(ctx, s.Events, spec.Subjects(), func(other *v1alpha1.GitEvent) bool {
		if other.Name == event || !concerns(spec, cancels, other) {
			return true
		}
		going := slices.ContainsFunc(other.Status.Runs, func(run v1alpha1.Run) bool {
			ended := run.Refused != nil || run.Result != nil || other.Cancelled(run.Pipeline) != nil
			return !ended && cancels.Covers(run.Pipeline)
		})
		running = running || going
		something = something || going || !other.Status.Plan.Decided()
		return !running
	})
	return something, running, err
}

// ends reports whether an event stops the runs of another one, because that has happened before. Of
// two events that close the pull request, the later one stops the other.
func ends(spec *v1alpha1.GitEventSpec, cancels *v1alpha1.Cancellation, other *v1alpha1.GitEventSpec) bool {
	if other.Closes() {
		return spec.Closes() && other.Happened().Before(cancels.At.Time)
	}
	return other.Precedes(spec, cancels.At.Time)
}

// elsewhere reports whether an event is known to belong to another branch or tag than the one whose
// runs are stopped.
func elsewhere(cancels *v1alpha1.Cancellation, other *v1alpha1.GitEvent) bool {
	ref := other.GitRef()
	return cancels.Ref != "" && ref != "" && ref != cancels.Ref
}

// Since returns why an event of a pull request or merge group must not start anything: it was
// closed after the event happened. It returns nil if that is not known; then the event of the close
// finds this one. For events that were recorded long after they happened it asks the API server,
// for all others the cache.
func (s *Step) Since(ctx context.Context, event *v1alpha1.GitEvent) (*v1alpha1.Cancellation, error) {
	spec := event.AsRecorded()
	if spec.PullRequest == nil && spec.Trigger != v1alpha1.TriggerMergeGroup || spec.Closes() {
		return nil, nil
	}
	if spec.ReceivedAt.Sub(spec.Happened()) > s.window()*2/5 {
		var closed *v1alpha1.Cancellation
		err := history.Each(ctx, s.Events, spec.Subjects(), func(other *v1alpha1.GitEvent) bool {
			if closes(other, spec) {
				closed = other.Status.Plan.Cancels
			}
			return closed == nil
		})
		return closed, err
	}
	cached, err := s.Open.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing open GitEvents: %w", err)
	}
	for _, other := range cached {
		if closes(other, spec) {
			return other.Status.Plan.Cancels, nil
		}
	}
	return nil, nil
}

// closes reports whether an event has closed the pull request or merge group of another one after
// that happened. It counts only once it is planned: by then an unsigned delivery is confirmed.
func closes(event *v1alpha1.GitEvent, earlier *v1alpha1.GitEventSpec) bool {
	plan := event.Status.Plan
	return plan != nil && plan.Cancels != nil && event.Spec.ClosesOf(earlier) &&
		earlier.Precedes(event.AsRecorded(), plan.Cancels.At.Time)
}

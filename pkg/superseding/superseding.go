// SPDX-License-Identifier: Apache-2.0

// Package superseding ends the older runs of a pipeline when a newer event of the same pull request, branch or tag has started one
// (cancel-in-progress). Which event is newer is decided from Git, never by which came first: see order.go and docs/adr/0043. The newer
// event tells the older ones, as an event does that closes a pull request (pkg/cancelling); each ends its own runs. An older one that
// comes late finds the newer one itself.
package superseding

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/attempt"
	"github.com/plumbline-ci/plumbline/pkg/cancelling"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/retry"
)

const (
	// Lag is for how long a replica of the Git service may not have heard of a push. What it says of events that were received since then
	// counts only if the commits that their pushes replaced agree.
	Lag = 30 * time.Second
	// Late is how long a delivery may take. Of one that took longer the newer event may be over already, and Git is asked.
	Late = 10 * time.Second
	// again is how soon an event comes back that cannot be ordered yet.
	again = 3 * time.Second
	// maxNames is the bytes of names in one annotation: an event takes note of 50, and all of an object may have 256 KiB.
	maxNames = 3500
)

// Step ends runs that a newer event has taken the place of.
type Step struct {
	Events cancelling.Events
	// Of returns the open events of a Repository, trimmed, from the cache. They are not changed.
	Of func(namespace, name string) []*v1alpha1.GitEvent
}

// Heed is done before the event creates anything: it takes note if a newer event has taken the place of its runs. It returns an error as
// long as that is not known; nothing is created until then.
func (s *Step) Heed(ctx context.Context, a *attempt.Attempt) error {
	return a.Waits.Step(v1alpha1.StepSupersede, func() error {
		return a.Waits.Try(retry.Step{Name: v1alpha1.StepSupersede}, func() error { return s.heed(ctx, a) })
	})
}

// Tell is done after the event has created what it can: it tells the older events. It is repeated until each of them has taken note.
func (s *Step) Tell(ctx context.Context, a *attempt.Attempt) error {
	if a.Event.Status.Plan.Cancels != nil {
		return nil // it starts nothing, and the step is that of pkg/cancelling
	}
	err := a.Waits.Try(retry.Step{Name: v1alpha1.StepNotify}, func() error { return s.tell(ctx, a) })
	return a.Waits.Settle(v1alpha1.StepNotify, err)
}

func (s *Step) heed(ctx context.Context, a *attempt.Attempt) error {
	l := s.line(a)
	var undecided error
	for _, other := range l.others {
		names := ended(l.self, other)
		if len(names) == 0 || l.told(other, names) {
			continue
		}
		head, err := s.head(ctx, a, l, other)
		if err != nil {
			return err
		}
		order, newest := l.order(other, head, a.Clock.Now())
		switch order {
		case older:
			return s.note(ctx, a, other.Name, names, newest)
		case unknown:
			undecided = fault.Throttledf(fault.ReasonBusy, again, "whether GitEvent %s is newer is not known yet", other.Name)
		}
	}
	if undecided != nil {
		return undecided
	}
	return s.heedLate(ctx, a, l)
}

// heedLate asks Git about an event that was recorded late and has created nothing yet: a newer one may have come, run and ended.
func (s *Step) heedLate(ctx context.Context, a *attempt.Attempt, l *line) error {
	spec := &a.Event.Spec
	var names []string
	for i := range a.Event.Status.Runs {
		if run := &a.Event.Status.Runs[i]; run.CancelInProgress && run.Creatable() && a.Event.Cancelled(run.Pipeline) == nil {
			names = append(names, run.Pipeline)
		}
	}
	if len(names) == 0 || l.name == "" || spec.Comment != nil || spec.Rerun != nil || spec.ReceivedAt.Sub(spec.Happened()) < Late {
		return nil
	}
	head, err := a.Git.Tip(ctx, l.spec(spec))
	if err != nil || head == "" || head == l.sha {
		return err
	}
	if !l.sure(l.sha, head, a.Clock.Since(spec.ReceivedAt.Time)) {
		return fault.Throttledf(fault.ReasonBusy, again, "whether commit %s is newer is not known yet", head)
	}
	return s.note(ctx, a, a.Event.Name, names, head)
}

// head is the commit that the pull request or branch is at now. Nobody is asked about two events of one commit.
func (s *Step) head(ctx context.Context, a *attempt.Attempt, l *line, other *v1alpha1.GitEvent) (string, error) {
	if shaOf(other) == l.sha {
		return "", nil
	}
	return a.Git.Tip(ctx, l.spec(&a.Event.Spec))
}

func (s *Step) tell(ctx context.Context, a *attempt.Attempt) error {
	names := replaces(a.Event)
	if len(names) == 0 {
		return nil
	}
	l := s.line(a)
	var faults []error
	over := a.Turn(attempt.ShortTurn)
	for _, other := range l.others {
		if !mayHave(other, names) || l.told(other, names) {
			continue
		}
		head, err := s.head(ctx, a, l, other)
		if err != nil {
			return attempt.First(append(faults, err))
		}
		switch order, _ := l.order(other, head, a.Clock.Now()); order {
		case newer:
			if err := attempt.First([]error{over(), a.Record.Confirm(ctx)}); err != nil {
				return attempt.First(append(faults, err))
			}
			faults = append(faults, s.endOther(ctx, a, other, names))
		case unknown:
			faults = append(faults, fault.Throttledf(fault.ReasonBusy, again, "whether GitEvent %s is older is not known yet", other.Name))
		}
	}
	return attempt.First(faults)
}

// endOther tells an older event which of its runs end.
func (s *Step) endOther(ctx context.Context, a *attempt.Attempt, other *v1alpha1.GitEvent, names []string) error {
	from := a.Event.Name
	for part, some := range parts(names) {
		if err := cancelling.Tell(ctx, s.Events, partName(from, part), cancellation(&a.Event.Spec, some, shaOf(a.Event)), other); err != nil {
			return err
		}
	}
	return nil
}

// note has the event take note of what takes its place, as if the newer event had told it, and goes on with that version of it. It may be
// repeated; if somebody else has written the event meanwhile, it is read again.
func (s *Step) note(ctx context.Context, a *attempt.Attempt, from string, names []string, newest string) error {
	if err := a.Record.Confirm(ctx); err != nil {
		return err
	}
	for part, some := range parts(names) {
		patched, err := cancelling.Note(ctx, s.Events, partName(from, part), cancellation(&a.Event.Spec, some, newest), a.Event)
		if err != nil {
			return err
		}
		a.Event.ResourceVersion, a.Event.Annotations = patched.ResourceVersion, patched.Annotations
	}
	return nil
}

// cancellation ends runs because of a commit.
func cancellation(spec *v1alpha1.GitEventSpec, names []string, newest string) *v1alpha1.Cancellation {
	return &v1alpha1.Cancellation{Names: names, Why: attempt.SupersededBy(newest), At: metav1.NewTime(spec.Happened().Truncate(time.Second))}
}

// parts are the names in portions that fit into an annotation.
func parts(names []string) [][]string {
	all, bytes := [][]string{nil}, 0
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if bytes += len(name) + len(`"",`); bytes > maxNames && len(all[len(all)-1]) > 0 {
			all, bytes = append(all, nil), len(name)
		}
		all[len(all)-1] = append(all[len(all)-1], name)
	}
	return all
}

// partName is what a portion is said to come from. No name of an event has a dot.
func partName(from string, part int) string {
	if part == 0 {
		return from
	}
	return fmt.Sprintf("%s.%d", from, part)
}

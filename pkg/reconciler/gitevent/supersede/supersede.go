// SPDX-License-Identifier: Apache-2.0

// Package supersede ends the older runs of a pipeline when a newer event of the same pull request,
// branch or tag has started one (cancel-in-progress). Which event is newer is decided from Git,
// never by which came first: see order.go and docs/adr/0043. The newer event tells the older ones,
// as an event does that closes a pull request (pkg/reconciler/gitevent/cancel); each ends its own
// runs. An older one that comes late finds the newer one itself.
package supersede

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

const (
	// Lag is for how long after a commit was learnt what the Git service says counts only if the
	// pushes on record agree.
	Lag = git.Lag
	// Late is how long it may take from an event to its plan. Of one that took longer the newer
	// event may be over already, and Git is asked.
	Late = 10 * time.Second
	// Patience is for how long an event creates nothing that a newer one may have taken the place
	// of, while the Git service refuses to say. Nobody guesses then either: both runs go on.
	GuessAfter = 10 * time.Minute
	// again is how soon an event comes back that cannot be ordered yet.
	again = 3 * time.Second
	// maxNames is the bytes of names in one annotation: an event takes note of 50, and all of an
	// object may have 256 KiB.
	maxNames = 3500
)

// Step ends runs that a newer event has taken the place of.
type Step struct {
	Events Events
	// From returns the open events of an Origin, trimmed, from the cache. They are not changed.
	From func(origin string) []*v1alpha1.GitEvent
}

// Events is what is asked of the GitEvents' client.
type Events interface {
	Patcher
	history.Lister
}

// Heed is done before the event creates anything: it takes note if a newer event has taken the
// place of its runs. As long as that is not known of some pipelines it returns them, and an error:
// they are not created yet. The others do not wait.
func (s *Step) ApplyNewer(ctx context.Context, a *attempt.Attempt) (held []string, err error) {
	l := s.series(a)
	rivals := l.rivals()
	if held = l.contested(rivals); len(held) == 0 {
		a.Waits.Clear(v1alpha1.StepSupersede)
		return nil, nil
	}
	err = a.Waits.Run(v1alpha1.StepSupersede, func() error {
		return a.Waits.WithBackoff(backoff.Step{Name: v1alpha1.StepSupersede}, func() (err error) {
			held, err = s.findNewer(ctx, a, l, rivals)
			return err
		})
	})
	f, wait := fault.Of(err), a.Waits.Of(v1alpha1.StepSupersede)
	switch {
	case f == nil:
		return held, nil
	case f.Class == fault.Conflict: // somebody else has written the event: it may be cancelled
		return pipelines(a.Event), err
	case wait != nil && wait.Class == fault.Operator.String() && wait.Reason == f.Reason && a.Clock.Since(wait.Since.Time) >= GuessAfter:
		return nil, err
	}
	return held, err
}

// Tell is done after the event has created what it can: it tells the older events. It is repeated
// until each of them has taken note.
func (s *Step) TellOlder(ctx context.Context, a *attempt.Attempt) error {
	if a.Event.Status.Plan.Cancels != nil {
		return nil // it starts nothing, and the step is that of pkg/reconciler/gitevent/cancel
	}
	err := a.Waits.WithBackoff(backoff.Step{Name: v1alpha1.StepNotify}, func() error { return s.tell(ctx, a) })
	return a.Waits.Update(v1alpha1.StepNotify, err)
}

// line is that of an event, as the cache knows it.
func (s *Step) series(a *attempt.Attempt) *series {
	return seriesOf(a.Event, s.From(a.Event.Spec.Repository.Origin()))
}

// git asks for a line.
func (s *Step) git(ctx context.Context, a *attempt.Attempt, l *series) asks {
	return asks{
		tip: func() (string, error) { return a.Git.Tip(ctx, l.spec()) },
		had: func(sha string) (events []*v1alpha1.GitEvent, err error) {
			spec := l.self.Spec
			spec.SHA = sha
			err = history.Each(ctx, s.Events, spec.Subjects(), func(event *v1alpha1.GitEvent) bool {
				if shaOf(event) == sha && len(event.Status.Runs) > 0 {
					events = append(events, history.Trimmed(event))
				}
				return true
			})
			slices.SortFunc(events, later)
			return events, err
		},
	}
}

func (s *Step) findNewer(ctx context.Context, a *attempt.Attempt, l *series, rivals []rival) (held []string, err error) {
	v, err := l.findNewer(rivals, s.git(ctx, a, l), a.Clock.Now())
	for _, n := range v.notes {
		if err := s.note(ctx, a, n); err != nil {
			return append(v.held, n.names...), err
		}
	}
	if f := fault.Of(err); f != nil && f.Class == fault.Operator {
		err = fault.Operatorf(
			f.Reason,
			"%s; whether there is a newer run is not known, and after %s both go on",
			f.Message,
			GuessAfter,
		)
	}
	return v.held, err
}

func pipelines(event *v1alpha1.GitEvent) (names []string) {
	for _, run := range event.Status.Runs {
		names = append(names, run.Pipeline)
	}
	return names
}

func (s *Step) tell(ctx context.Context, a *attempt.Attempt) error {
	names := replaces(a.Event)
	if len(names) == 0 {
		return nil
	}
	l := s.series(a)
	proceed := a.Within(attempt.ShortLimit, a.Record.Confirm)
	olders, err := l.olderEvents(names, s.git(ctx, a, l), a.Clock.Now())
	faults := attempt.Each(ctx, olders, proceed, func(ctx context.Context, other *v1alpha1.GitEvent) error {
		return s.endOther(ctx, a, other, names)
	})
	return attempt.Merge(append([]error{err}, faults...))
}

// endOther tells an older event which of its runs end. It keeps what was said before.
func (s *Step) endOther(ctx context.Context, a *attempt.Attempt, other *v1alpha1.GitEvent, names []string) error {
	from := a.Event.Name
	for part, some := range parts(append(noted(other, from), names...)) {
		if err := Annotate(
			ctx,
			s.Events,
			partName(from, part),
			cancellation(a.Event.AsRecorded(), some, shaOf(a.Event)),
			other,
		); err != nil {
			return err
		}
	}
	return nil
}

// note has the event take note of what takes its place, as if the newer event had told it, and goes
// on with that version of it. It may be repeated; if somebody else has written the event meanwhile,
// it is read again.
func (s *Step) note(ctx context.Context, a *attempt.Attempt, n note) error {
	if err := a.Record.Confirm(ctx); err != nil {
		return err
	}
	for part, some := range parts(append(noted(a.Event, n.from), n.names...)) {
		patched, err := annotate(
			ctx,
			s.Events,
			partName(n.from, part),
			cancellation(a.Event.AsRecorded(), some, n.newest),
			a.Event,
		)
		if err != nil || patched == nil {
			return err
		}
		a.Event.ResourceVersion, a.Event.Annotations = patched.ResourceVersion, patched.Annotations
	}
	return nil
}

// noted are the pipelines of what the event has taken note of from another one: the note that
// replaces it has to keep them.
func noted(event *v1alpha1.GitEvent, from string) (names []string) {
	for key, value := range event.Annotations {
		c := &v1alpha1.Cancellation{}
		if of := strings.TrimPrefix(
			key,
			plumbline.CancelAnnotation,
		); of != key && (of == from || strings.HasPrefix(of, from+".")) &&
			json.Unmarshal([]byte(value), c) == nil {
			names = append(names, c.Names...)
		}
	}
	return names
}

// cancellation ends runs because of a commit.
func cancellation(spec *v1alpha1.GitEventSpec, names []string, newest string) *v1alpha1.Cancellation {
	return &v1alpha1.Cancellation{
		Names: names,
		Why:   attempt.SupersededBy(newest),
		At:    metav1.NewTime(spec.Happened().Truncate(time.Second)),
	}
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

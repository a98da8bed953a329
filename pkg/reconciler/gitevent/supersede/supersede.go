// SPDX-License-Identifier: Apache-2.0

// Package supersede stops the older runs of a pipeline when a newer event of the same pull request,
// branch or tag has started one (cancel-in-progress). Git decides which event is newer, never the
// order of arrival: see order.go and docs/adr/0043. The newer event annotates the older ones, like
// an event that closes a pull request (pkg/reconciler/gitevent/cancel). Each of those stops its own
// runs. An older event that arrives late finds the newer one itself.
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
	// Lag is how long after a commit was learned the Git service's answer counts only if the
	// recorded pushes agree.
	Lag = git.Lag
	// Late is how long it may take from an event to its plan. If it took longer, the newer event
	// may be settled already, and Git is asked.
	Late = 10 * time.Second
	// GuessAfter is how long an event does not create runs that a newer one may have replaced,
	// while the Git service refuses to answer. After that both runs go on.
	GuessAfter = 10 * time.Minute
	// again is how soon an event is reconciled again that cannot be ordered yet.
	again = 3 * time.Second
	// maxNames is the bytes of names in one annotation: an event applies 50 annotations, and all of
	// an object may have 256 KiB.
	maxNames = 3500
)

// Step stops runs that a newer event has replaced.
type Step struct {
	Events Events
	// From returns the unsettled events of an Origin, trimmed, from the cache. Do not change them.
	From func(origin string) []*v1alpha1.GitEvent
}

// Events is the part of the GitEvents' client that is needed.
type Events interface {
	Patcher
	history.Lister
}

// ApplyNewer is called before the event creates anything. It annotates the event if a newer event
// has replaced its runs. While that is not known of some pipelines it returns them, and an error:
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
	case f.Class == fault.Conflict: // the event has another version: it may be cancelled
		return pipelines(a.Event), err
	case wait != nil && wait.Class == fault.Operator.String() && wait.Reason == f.Reason &&
		a.Clock.Since(wait.Since.Time) >= GuessAfter:
		return nil, err
	}
	return held, err
}

// TellOlder is called after the event has created what it can: it annotates the older events. It is
// repeated until each of them has the annotation.
func (s *Step) TellOlder(ctx context.Context, a *attempt.Attempt) error {
	if a.Event.Status.Plan.Cancels != nil {
		return nil // it starts nothing, and pkg/reconciler/gitevent/cancel handles it
	}
	err := a.Waits.WithBackoff(backoff.Step{Name: v1alpha1.StepNotify}, func() error { return s.tell(ctx, a) })
	return a.Waits.Update(v1alpha1.StepNotify, err)
}

// series returns the series of an event, as the cache knows it.
func (s *Step) series(a *attempt.Attempt) *series {
	return seriesOf(a.Event, s.From(a.Event.Spec.Repository.Origin()))
}

// git returns what asks Git about a series.
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

func (s *Step) findNewer(
	ctx context.Context, a *attempt.Attempt, l *series, rivals []rival,
) (held []string, err error) {
	v, err := l.findNewer(rivals, s.git(ctx, a, l), a.Clock.Now())
	for _, n := range v.notes {
		if err := s.note(ctx, a, n); err != nil {
			return append(v.held, n.names...), err
		}
	}
	if f := fault.Of(err); f != nil && f.Class == fault.Operator {
		err = fault.Operatorf(f.Reason, "%s; whether there is a newer run is not known, and after %s both go on",
			f.Message, GuessAfter)
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

// endOther annotates an older event with its runs that are stopped. It keeps what an earlier
// annotation says.
func (s *Step) endOther(ctx context.Context, a *attempt.Attempt, other *v1alpha1.GitEvent, names []string) error {
	from := a.Event.Name
	for part, some := range parts(append(noted(other, from), names...)) {
		if err := Annotate(
			ctx, s.Events, partName(from, part), cancellation(a.Event.AsRecorded(), some, shaOf(a.Event)), other,
		); err != nil {
			return err
		}
	}
	return nil
}

// note annotates the event with what replaces it, as if the newer event had done that, and goes on
// with that version of the event. It may be repeated. If the event has another version meanwhile,
// it is read again.
func (s *Step) note(ctx context.Context, a *attempt.Attempt, n note) error {
	if err := a.Record.Confirm(ctx); err != nil {
		return err
	}
	for part, some := range parts(append(noted(a.Event, n.from), n.names...)) {
		patched, err := annotate(ctx, s.Events, partName(n.from, part), cancellation(a.Event.AsRecorded(), some, n.newest),
			a.Event)
		if err != nil || patched == nil {
			return err
		}
		a.Event.ResourceVersion, a.Event.Annotations = patched.ResourceVersion, patched.Annotations
	}
	return nil
}

// noted returns the pipelines that an annotation of another event names: the annotation that
// replaces it must keep them.
func noted(event *v1alpha1.GitEvent, from string) (names []string) {
	for key, value := range event.Annotations {
		c := &v1alpha1.Cancellation{}
		of, cancels := strings.CutPrefix(key, plumbline.CancelAnnotation)
		if cancels && (of == from || strings.HasPrefix(of, from+".")) && json.Unmarshal([]byte(value), c) == nil {
			names = append(names, c.Names...)
		}
	}
	return names
}

// cancellation returns a Cancellation because of a newer commit.
func cancellation(spec *v1alpha1.GitEventSpec, names []string, newest string) *v1alpha1.Cancellation {
	return &v1alpha1.Cancellation{
		Names: names,
		Why:   attempt.SupersededBy(newest),
		At:    metav1.NewTime(spec.Happened().Truncate(time.Second)),
	}
}

// parts returns the names in portions that fit into an annotation.
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

// partName is the source in the annotation of a portion. No name of an event has a dot.
func partName(from string, part int) string {
	if part == 0 {
		return from
	}
	return fmt.Sprintf("%s.%d", from, part)
}

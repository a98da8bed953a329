// SPDX-License-Identifier: Apache-2.0

package supersede

import (
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// asks has the questions to Git and to the record that a decision may need.
type asks struct {
	// tip returns the head of the pull request or branch, "" if there is none.
	tip func() (string, error)
	// had returns the recorded events of the series for a commit, settled ones, too.
	had func(sha string) ([]*v1alpha1.GitEvent, error)
}

// note says which runs of the event a commit replaces.
type note struct {
	from   string // the GitEvent that is newer
	names  []string
	newest string
}

// verdict is the outcome of the check before the event creates anything.
type verdict struct {
	notes []note
	// held are the pipelines of which it is not known yet whether a newer event has replaced their
	// runs.
	held []string
}

func (v *verdict) note(from string, names []string, newest string) {
	v.notes = append(v.notes, note{from, names, newest})
}

// rival is another event with runs of the same pipelines. It stops those of the event if it is
// newer.
type rival struct {
	event *v1alpha1.GitEvent
	names []string
}

func (s *series) rivals() (all []rival) {
	for _, other := range s.others {
		if names := goingOn(s.self, replaces(other)); len(names) > 0 {
			all = append(all, rival{other, names})
		}
	}
	return all
}

// contested returns the pipelines whose runs a newer event may have replaced. That needs no call.
func (s *series) contested(rivals []rival) []string {
	names := s.late()
	for _, r := range rivals {
		names = append(names, r.names...)
	}
	return names
}

// findNewer finds out what replaces runs of the event. It returns an error while a pipeline is
// held: Git does not say what is newest, or may not have received all pushes yet (a Throttled
// fault).
func (s *series) findNewer(rivals []rival, ask asks, now time.Time) (v verdict, err error) {
	over := map[string]bool{}
	for _, r := range rivals {
		names := slices.DeleteFunc(r.names, func(name string) bool { return over[name] })
		if len(names) == 0 {
			continue // one annotation is enough
		}
		order, newest, unasked := s.compare(ask, r.event, now)
		switch {
		case unasked != nil:
			v.held, err = append(v.held, names...), unasked
		case order == older:
			v.note(r.event.Name, names, newest)
			for _, name := range names {
				over[name] = true
			}
		case order == unknown: // the event that Git says is newest does not wait
			v.held = append(v.held, names...)
		}
	}
	v.held = slices.DeleteFunc(v.held, func(name string) bool { return over[name] })
	if names := s.late(); len(names) > 0 && len(v.notes) == 0 && len(v.held) == 0 {
		err = s.findPast(ask, &v, names, now)
	}
	if len(v.held) > 0 && err == nil {
		err = fault.Throttledf(fault.ReasonBusy, again, "whether there is a newer run is not known yet")
	}
	return v, err
}

// late returns the pipelines of an event that was planned long after it happened, and whose runs
// were not requested yet. A newer event may have come, run and finished. A run that waits for a
// slot or a quota is seen by each newer event, like a created one. A user who asks for a run in a
// comment, by a re-run or by a request to /incoming wants it now.
func (s *series) late() (names []string) {
	spec := &s.self.Spec
	if s.name == "" || spec.Comment != nil || spec.Rerun != nil || spec.Incoming != nil ||
		attempt.LearnedAt(s.self).Sub(s.self.Happened()) < Late {
		return nil
	}
	for i := range s.self.Status.Runs {
		if run := &s.self.Status.Runs[i]; run.CancelInProgress && run.Creatable() && !starts(s.self, run) &&
			s.self.Cancelled(run.Pipeline) == nil {
			names = append(names, run.Pipeline)
		}
	}
	return names
}

// findPast asks what was run for the head, if the event is not of the head. Of a pipeline that the
// head's events have not run, the late event's run is the newest.
func (s *series) findPast(ask asks, v *verdict, names []string, now time.Time) error {
	head, err := ask.tip()
	if err == nil && (head == "" || head == s.sha) {
		return nil
	}
	v.held = names
	if err != nil || !s.certain(s.self, head, now) {
		return err
	}
	had, err := ask.had(head)
	if err != nil {
		return err
	}
	v.held = nil
	for _, event := range had {
		if taken := intersection(replaces(event), names); len(taken) > 0 && s.has(event) && shaOf(event) == head {
			v.note(event.Name, taken, head)
		}
	}
	return nil
}

// olderEvents returns the events whose runs of these pipelines are stopped because the event has
// one. The error is as of findNewer.
func (s *series) olderEvents(names []string, ask asks, now time.Time) (olders []*v1alpha1.GitEvent, err error) {
	for _, other := range s.others {
		if len(goingOn(other, names)) == 0 {
			continue
		}
		order, _, unasked := s.compare(ask, other, now)
		switch {
		case unasked != nil:
			err = unasked
		case order == newer:
			olders = append(olders, other)
		case err == nil && (order == unknown || order == unconfirmed):
			err = fault.Throttledf(fault.ReasonBusy, again, "whether GitEvent %s is older is not known yet", other.Name)
		}
	}
	return olders, err
}

// compare is order with the current head. Two events of one commit need no call.
func (s *series) compare(ask asks, other *v1alpha1.GitEvent, now time.Time) (result order, newest string, err error) {
	head := ""
	if shaOf(other) != s.sha {
		if head, err = ask.tip(); err != nil {
			return unknown, "", err
		}
	}
	result, newest = s.order(other, head, now)
	return result, newest, nil
}

// replaces returns the pipelines whose older runs an event stops: its own exist, or wait only for
// what older ones may occupy. A cancelled event replaces nothing.
func replaces(event *v1alpha1.GitEvent) (names []string) {
	for i := range event.Status.Runs {
		run := &event.Status.Runs[i]
		if run.CancelInProgress && starts(event, run) && event.Cancelled(run.Pipeline) == nil {
			names = append(names, run.Pipeline)
		}
	}
	return names
}

// starts reports whether a run was created, or will be when there is room. By then admission has
// accepted it.
func starts(event *v1alpha1.GitEvent, run *v1alpha1.Run) bool {
	if run.Started() || !run.Creatable() {
		return run.Started()
	}
	return slices.ContainsFunc(event.Status.Waits, func(wait v1alpha1.Wait) bool {
		return wait.Step == v1alpha1.StepCreate+run.Name &&
			(wait.Reason == fault.ReasonConcurrencyLimit || wait.Reason == fault.ReasonQuota)
	})
}

// goingOn returns the pipelines of which an event has an unfinished run, or may get one, and which
// nothing has cancelled. It returns none for an event that cannot take more annotations.
func goingOn(event *v1alpha1.GitEvent, names []string) (left []string) {
	decided := event.Status.Plan.Decided()
	for _, name := range names {
		has := !decided || slices.ContainsFunc(event.Status.Runs, func(run v1alpha1.Run) bool {
			return run.Pipeline == name && run.Refused == nil && run.Result == nil
		})
		if has && event.Cancelled(name) == nil {
			left = append(left, name)
		}
	}
	if len(left) > 0 && !event.Needs(&v1alpha1.Cancellation{Names: left}) {
		return nil
	}
	return left
}

func intersection(some, others []string) (both []string) {
	for _, name := range some {
		if slices.Contains(others, name) {
			both = append(both, name)
		}
	}
	return both
}

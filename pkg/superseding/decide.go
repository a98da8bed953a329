// SPDX-License-Identifier: Apache-2.0

package superseding

import (
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// note is what the event takes note of: runs of it end because of a commit.
type note struct {
	from   string // the GitEvent that is newer, or the event itself if nobody knows one
	names  []string
	newest string
}

// tip asks Git what the pull request or branch is at now.
type tip func() (string, error)

// heed returns what takes the place of runs of the event. Beside that it may return an error: what Git says is not known, or the Git
// service may not have heard of all pushes yet (a Throttled fault).
func (l *line) heed(ask tip, now time.Time) (notes []note, err error) {
	var undecided error
	for _, other := range l.others {
		names := ended(l.self, other)
		if len(names) == 0 || l.told(other, names) {
			continue
		}
		head, err := l.head(ask, other)
		if err != nil {
			return notes, err
		}
		switch order, newest := l.order(other, head, now); order {
		case older:
			notes = append(notes, note{other.Name, names, newest})
		case unknown:
			if head == l.sha { // what Git calls the newest is not kept waiting
				continue
			}
			undecided = fault.Throttledf(fault.ReasonBusy, again, "whether GitEvent %s is newer is not known yet", other.Name)
		}
	}
	if len(notes) > 0 || undecided != nil {
		return notes, undecided
	}
	return l.late(ask, now)
}

// begins are the pipelines that the event may create a run of, and of which a newer run ends the older ones.
func (l *line) begins() (names []string) {
	for i := range l.self.Status.Runs {
		if run := &l.self.Status.Runs[i]; run.CancelInProgress && run.Creatable() && l.self.Cancelled(run.Pipeline) == nil {
			names = append(names, run.Pipeline)
		}
	}
	return names
}

// late asks Git about an event that was recorded late and has created nothing yet: a newer one may have come, run and ended.
func (l *line) late(ask tip, now time.Time) ([]note, error) {
	spec, names := &l.self.Spec, l.begins()
	if len(names) == 0 || l.name == "" || spec.Comment != nil || spec.Rerun != nil || spec.ReceivedAt.Sub(spec.Happened()) < Late {
		return nil, nil
	}
	head, err := ask()
	switch {
	case err != nil || head == "" || head == l.sha:
		return nil, err
	case !l.sure(l.sha, head, now.Sub(spec.ReceivedAt.Time)):
		return nil, fault.Throttledf(fault.ReasonBusy, again, "whether commit %s is newer is not known yet", head)
	}
	return []note{{l.self.Name, names, head}}, nil
}

// olders returns the events whose runs of these pipelines end because the event has one, and have not been told. The error is as of heed.
func (l *line) olders(names []string, ask tip, now time.Time) (olders []*v1alpha1.GitEvent, err error) {
	var undecided error
	for _, other := range l.others {
		if !mayHave(other, names) || l.told(other, names) {
			continue
		}
		head, err := l.head(ask, other)
		if err != nil {
			return olders, err
		}
		switch order, _ := l.order(other, head, now); order {
		case newer:
			olders = append(olders, other)
		case unknown:
			undecided = fault.Throttledf(fault.ReasonBusy, again, "whether GitEvent %s is older is not known yet", other.Name)
		}
	}
	return olders, undecided
}

// head is the commit that the pull request or branch is at now. Nobody is asked about two events of one commit.
func (l *line) head(ask tip, other *v1alpha1.GitEvent) (string, error) {
	if shaOf(other) == l.sha {
		return "", nil
	}
	return ask()
}

// replaces are the pipelines whose older runs an event ends: its own are there, or wait for nothing but what older ones may have.
func replaces(event *v1alpha1.GitEvent) (names []string) {
	for i := range event.Status.Runs {
		run := &event.Status.Runs[i]
		if run.CancelInProgress && starts(event, run) && event.Cancelled(run.Pipeline) == nil {
			names = append(names, run.Pipeline)
		}
	}
	return names
}

// starts tells whether a run was created, or will be when there is room: whoever refuses its text has been asked by then.
func starts(event *v1alpha1.GitEvent, run *v1alpha1.Run) bool {
	if run.UID != "" || !run.Creatable() {
		return run.UID != ""
	}
	return slices.ContainsFunc(event.Status.Waits, func(wait v1alpha1.Wait) bool {
		return wait.Step == v1alpha1.StepCreate+run.Name && (wait.Reason == fault.ReasonConcurrencyLimit || wait.Reason == fault.ReasonQuota)
	})
}

// lives tells whether a run is not over.
func lives(run *v1alpha1.Run) bool { return run.Refused == nil && run.Result == nil }

// ended are the pipelines of an event that another one ends if that is newer.
func ended(event, other *v1alpha1.GitEvent) (names []string) {
	by := replaces(other)
	for i := range event.Status.Runs {
		if run := &event.Status.Runs[i]; lives(run) && slices.Contains(by, run.Pipeline) && event.Cancelled(run.Pipeline) == nil {
			names = append(names, run.Pipeline)
		}
	}
	return names
}

// mayHave tells whether an event has a run of one of the pipelines that is not over, or may get one.
func mayHave(event *v1alpha1.GitEvent, names []string) bool {
	return !event.Status.Plan.Decided() || slices.ContainsFunc(event.Status.Runs, func(run v1alpha1.Run) bool {
		return lives(&run) && slices.Contains(names, run.Pipeline)
	})
}

// told tells whether another event knows already that runs of these pipelines end: one of the line has told it that ends as many, or the
// event itself found out. One that cannot take note of more is left alone.
func (l *line) told(other *v1alpha1.GitEvent, names []string) bool {
	notes := 0
	for key := range other.Annotations {
		from, is := strings.CutPrefix(key, plumbline.CancelAnnotation)
		if !is {
			continue
		}
		notes++
		if from == other.Name || from == l.self.Name && covers(l.self, names) {
			return true
		}
		for _, event := range l.others {
			if event.Name == from && covers(event, names) {
				return true
			}
		}
	}
	return notes >= v1alpha1.MaxCancellations
}

func covers(event *v1alpha1.GitEvent, names []string) bool {
	all := replaces(event)
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(all, name) })
}

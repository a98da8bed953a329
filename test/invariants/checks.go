// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Shown is I-5: every planned run has a check; a skipped one may have none. It is completed with
// the run's result when the run is finished, completed as failure when the run was refused, and
// otherwise pending with words that say what it waits for.
func (e *Evidence) Shown() (broken []Violation) {
	for _, run := range e.Planned {
		check, found := e.newest(run.Key())
		if !found && run.Skipped() { // a pipeline that is not started yields to a check of its name
			continue
		}
		if !found {
			broken = append(broken, Violated("I-5", run.Name, "run %s has no check", run.Name))
			continue
		}
		if check.Line && check.Replaced { // by that of another run of its name: GitLab shows one of a name
			continue
		}
		broken = append(broken, e.shown(run, check)...)
	}
	return broken
}

// shown is I-5 for one run and its check.
func (e *Evidence) shown(run v1alpha1.Run, check Check) (broken []Violation) {
	if want := e.conclusions(run); !slices.Contains(want, check.Conclusion) {
		broken = append(broken, Violated("I-5", run.Name, "check %s of run %s is %s %q, want one of %q", check.ID, run.Name,
			check.Status, check.Conclusion, want))
	}
	if (check.Status == "completed") != (check.Conclusion != "") || check.Title == "" || check.Summary == "" {
		broken = append(broken, Violated("I-5", run.Name, "check %s of run %s is %s %q without words", check.ID, run.Name,
			check.Status, check.Conclusion))
	}
	if never := !run.Started() && run.Refused == nil && run.Result == nil; never &&
		(check.Status != "queued" || check.Text == "") {
		broken = append(broken, Violated("I-5", run.Name, "check %s of run %s, which does not exist, is %s and waits for %q",
			check.ID, run.Name, check.Status, check.Text))
	}
	return broken
}

// conclusions returns those that a run's check may have now.
func (e *Evidence) conclusions(run v1alpha1.Run) []string {
	switch {
	case run.Refused != nil && run.UID == "":
		return []string{"failure"}
	case e.succeeded(run) == corev1.ConditionTrue:
		return []string{"success"}
	case run.Result == nil && e.succeeded(run) == corev1.ConditionUnknown:
		return []string{""}
	case run.Result != nil && (run.Result.Outcome == v1alpha1.OutcomeFailed || e.failed(run)):
		return []string{"failure"}
	case run.Result != nil && run.Result.Outcome == v1alpha1.OutcomeSkipped:
		return []string{"skipped"}
	case run.Result != nil:
		return []string{"cancelled"}
	}
	return []string{"failure", "cancelled"} // Succeeded=False: its reason tells, and the event will
}

// newest returns the check of a run: the highest id with its name as external id.
func (e *Evidence) newest(externalID string) (newest Check, found bool) {
	for _, check := range e.Checks {
		if check.ExternalID == externalID && check.Number > newest.Number {
			newest = check
		}
	}
	return newest, newest.Number != 0
}

// Current is I-8: each run has exactly one current check, the newest; an older one of the same
// name is closed as superseded. Every check belongs to a planned run or event. A check that waits
// for approval ends when an event has started its commit, and not before.
func (e *Evidence) Current() (broken []Violation) {
	owners, started := e.owners()
	for _, check := range e.Checks {
		_, planned := e.Planned[check.ExternalID]
		disposition, own := owners[check.ExternalID]
		newest, _ := e.newest(check.ExternalID)
		waits := own && disposition == v1alpha1.DispositionPending && !started[check.ExternalID]
		switch {
		case !planned && !own:
			broken = append(broken, Violated("I-8", check.ExternalID, "check %s %q is of %q, which no GitEvent knows", check.ID,
				check.Name, check.ExternalID))
		case newest.ID != check.ID:
			if !check.Replaced {
				broken = append(broken, Violated("I-8", check.ExternalID, "check %s %q is a duplicate of %s and is %s %q", check.ID,
					check.Name, newest.ID, check.Status, check.Conclusion))
			}
		case started[check.ExternalID] && check.Status == "queued":
			broken = append(broken, Violated("I-8", check.ExternalID,
				"check %s waits for approval, and an event has started its commit", check.ID))
		case waits && check.Status != "queued":
			broken = append(broken, Violated("I-8", check.ExternalID, "check %s waits for approval and is %s %q", check.ID,
				check.Status, check.Conclusion))
		}
	}
	return broken
}

// owners returns the dispositions of events by the external ids of their own checks, and which of
// these ids are of commits that an event has started.
func (e *Evidence) owners() (owners map[string]v1alpha1.Disposition, started map[string]bool) {
	owners, started = map[string]v1alpha1.Disposition{}, map[string]bool{}
	for i := range e.Events {
		event := &e.Events[i]
		owners[event.Name] = event.Status.Disposition
		id := status.ApprovalID(event)
		if event.Status.Disposition == v1alpha1.DispositionPending {
			owners[id] = event.Status.Disposition
		}
		if plan := event.Status.Plan; plan != nil {
			started[id] = started[id] || plan.Approval != nil || event.Status.Disposition == v1alpha1.DispositionRuns
		}
	}
	return owners, started
}

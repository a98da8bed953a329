// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Outcome says in a few words what became of an event, for people who list events: "Succeeded",
// "Failed: 1 of 3", "Running", "Waiting: QuotaExceeded", "Ignored: NoMatch". It repeats the rest of
// the status and decides nothing.
//
// Of several runs one that failed counts first, then what waits, then what runs. What is known but
// not on the commit yet says so: "Succeeded, not reported: GitServiceUnavailable".
func Outcome(s *v1alpha1.GitEventStatus) string {
	runs, held := count(s.Runs), heldBy(s.Waits)
	var outcome string
	switch {
	case runs.failed > 0:
		outcome = "Failed" + share(runs.failed, len(s.Runs))
	case held != "":
		return "Waiting: " + held
	case runs.running > 0:
		outcome = "Running"
	case !s.Plan.Decided():
		outcome = "Planning"
	case s.Disposition != v1alpha1.DispositionRuns:
		outcome = disposed(s)
	case runs.uncreated > 0:
		outcome = "Creating"
	case runs.cancelled > 0:
		outcome = "Cancelled" + share(runs.cancelled, len(s.Runs))
	default:
		outcome = "Succeeded"
	}
	for _, wait := range s.Waits {
		if wait.Step == v1alpha1.StepReport {
			outcome += ", not reported: " + wait.Reason
		}
	}
	return outcome
}

// share is ": 1 of 3", nothing for an only run.
func share(n, of int) string {
	if of == 1 {
		return ""
	}
	return fmt.Sprintf(": %d of %d", n, of)
}

// disposed names the end of an event that has no run to speak for it. The other dispositions are
// their own reason.
func disposed(s *v1alpha1.GitEventStatus) string {
	switch s.Disposition {
	case v1alpha1.DispositionIgnored, v1alpha1.DispositionRefused, v1alpha1.DispositionCancels:
		return string(s.Disposition) + ": " + s.Plan.Reason
	}
	return string(s.Disposition)
}

// tally is how many runs of an event are in which state; the rest succeeded.
type tally struct{ failed, cancelled, running, uncreated int }

// count looks at runs in the order in which Desired does, so that both say the same.
func count(runs []v1alpha1.Run) tally {
	var t tally
	for i := range runs {
		conclusion := conclusionOf(runs[i].Result)
		switch {
		case conclusion == Success, conclusion == Skipped:
		case conclusion == Cancelled:
			t.cancelled++
		case conclusion == Failure, runs[i].UID == "" && runs[i].Refused != nil:
			t.failed++
		case runs[i].UID != "":
			t.running++
		default:
			t.uncreated++
		}
	}
	return t
}

// heldBy returns the reason of the wait that keeps the event from going on: for a controller that
// does not panic, then for the plan, then for the first run that cannot be created. What only a
// report or metadata waits for holds up nothing.
func heldBy(waits []v1alpha1.Wait) string {
	for _, holds := range []func(step string) bool{
		func(step string) bool { return step == v1alpha1.StepReconcile },
		func(step string) bool { return step == v1alpha1.StepPlan },
		func(step string) bool { return strings.HasPrefix(step, v1alpha1.StepCreate) },
	} {
		for _, wait := range waits {
			if holds(wait.Step) {
				return wait.Reason
			}
		}
	}
	return ""
}

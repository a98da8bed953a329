// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Summary returns the result of an event in a few words, for people who list events: "Succeeded",
// "Failed: 1 of 3", "Running", "Waiting: QuotaExceeded", "Ignored: NoMatch". It repeats the rest of
// the status and decides nothing.
//
// Of several runs, a failed one counts first, then a waiting one, then a running one. A result that
// the commit does not show yet says so: "Succeeded, not reported: GitServiceUnavailable".
func Summary(s *v1alpha1.GitEventStatus) string {
	runs, held := count(s.Runs), heldBy(s.Waits)
	var outcome string
	switch {
	case runs.failed > 0:
		outcome = "Failed" + share(runs.failed, runs.all)
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
		outcome = "Cancelled" + share(runs.cancelled, runs.all)
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

// share returns ": 1 of 3", and "" for a single run.
func share(n, of int) string {
	if of == 1 {
		return ""
	}
	return fmt.Sprintf(": %d of %d", n, of)
}

// disposed returns the outcome of an event without runs. Some dispositions need a reason to be
// understood.
func disposed(s *v1alpha1.GitEventStatus) string {
	switch s.Disposition {
	case v1alpha1.DispositionIgnored, v1alpha1.DispositionRefused, v1alpha1.DispositionCancels:
		return string(s.Disposition) + ": " + s.Plan.Reason
	}
	return string(s.Disposition)
}

// tally counts the runs of an event, all and by state; the rest succeeded.
type tally struct{ all, failed, cancelled, running, uncreated int }

// count judges runs by the same rules as Desired.
func count(runs []v1alpha1.Run) tally {
	var t tally
	for i := range runs {
		conclusion := conclusionOf(runs[i].Result)
		if conclusion != Skipped {
			t.all++
		}
		switch {
		case conclusion == Success, conclusion == Skipped:
		case conclusion == Cancelled:
			t.cancelled++
		case conclusion == Failure, runs[i].UID == "" && runs[i].Refused != nil:
			t.failed++
		case runs[i].Started():
			t.running++
		default:
			t.uncreated++
		}
	}
	return t
}

// heldBy returns the reason of the wait that blocks the event: a panic of the controller first,
// then planning, then the first run that cannot be created. Waits of reports and metadata block
// nothing.
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

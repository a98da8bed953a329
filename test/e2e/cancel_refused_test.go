// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"
)

// D5: while every UPDATE of PipelineRuns by our ServiceAccount is denied, neither /cancel nor closing the pull request ends anything, and the
// checks say so: "cancelling", with the denial, and not "cancelled". Once it is allowed the runs end, and then the checks.
func TestACancelThatIsDenied(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, cancelsUnderAPolicy)
}

func cancelsUnderAPolicy(t *testing.T, w *world) {
	w.git.grant("dev", "write")
	commented, said := w.topic("commented")
	closed, its := w.topic("closed")
	opened := []delivery{w.opened(commented), w.opened(closed)}
	for _, d := range opened {
		w.deliver(d, http.StatusAccepted)
	}
	shas := []string{said, its}
	for _, sha := range shas {
		w.checkReaches(sha, checkName("pr"), "in_progress", soon)
	}
	lift := w.enforce(policy{
		operation: "UPDATE", condition: w.byController(), expression: "false", message: "updates of PipelineRuns are not allowed here",
	}, w.probeUpdate())
	w.deliver(w.commands(commented, "dev", "/cancel"), http.StatusAccepted)
	w.deliver(w.closes(closed, false), http.StatusAccepted)
	for _, sha := range shas {
		w.eventually(afterFault, "the check says that it is being cancelled", func() error {
			check, _ := w.current(sha, checkName("pr"))
			if check.Status != "in_progress" || !check.Tells("ancelling") {
				return fmt.Errorf("%s %s %q %s", check.Status, check.Conclusion, check.Title, check.Text)
			}
			return nil
		})
	}
	w.eventually(soon, "what was refused is on record", func() error {
		for _, d := range opened {
			event := w.recordOf(d)
			if len(event.Status.Waits) == 0 || event.Settled() {
				return fmt.Errorf("%s waits for %v", event.Name, event.Status.Waits)
			}
		}
		return nil
	})
	for _, run := range w.runs() {
		if run.Spec.Status != "" || run.IsDone() {
			t.Errorf("%s is told %q although that is denied", run.Name, run.Spec.Status)
		}
	}
	for _, sha := range shas {
		if check, _ := w.current(sha, checkName("pr")); check.Status == "completed" {
			t.Errorf("the check is %s before the run has ended", check.Conclusion)
		}
	}
	lift()
	for _, sha := range shas {
		w.checkReaches(sha, checkName("pr"), "cancelled", afterFault)
	}
	w.settled(afterFault)
	for _, sha := range shas {
		w.oneCheck(sha, checkName("pr"))
		w.neverFailed(sha)
	}
}

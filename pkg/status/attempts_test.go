// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// later returns the run of the second of three attempts.
func later(change func(*v1alpha1.Run)) v1alpha1.Run {
	run := created()
	run.InfrastructureRetries = 2
	run.Retry("build-abc-2", &v1alpha1.Result{Cause: "node lost", CompletedAt: at(40)})
	change(&run)
	return run
}

// The check of a later attempt names those before it, and is never queued again.
func TestDesiredAttempts(t *testing.T) {
	t.Parallel()
	exists := func(run *v1alpha1.Run) { run.UID = "2" }
	for name, c := range map[string]struct {
		run      v1alpha1.Run
		reason   string
		cancel   bool
		title    string
		state    State
		conclude Conclusion
	}{
		"waits": {later(func(*v1alpha1.Run) {}), "AttemptFailed", false,
			"Attempt 2 of 3: attempt 1 ended because of a cluster problem (node lost)", InProgress, ""},
		"waits-quota": {later(func(*v1alpha1.Run) {}), fault.ReasonQuota, false,
			"Attempt 2 of 3: attempt 1 ended because of a cluster problem (node lost)", InProgress, ""},
		"runs": {later(exists), "", false,
			"Attempt 2 of 3: attempt 1 ended because of a cluster problem (node lost)", InProgress, ""},
		"cancelling": {later(func(*v1alpha1.Run) {}), fault.ReasonQuota, true,
			"Waiting for quota since 03:04 UTC on 2 January", InProgress, ""},
		"cancelled": {later(func(run *v1alpha1.Run) {
			run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled, Message: "cancelled: rita asked for it"}
		}), "", true, "Cancelled", Completed, Cancelled},
		"failed": {later(func(run *v1alpha1.Run) {
			exists(run)
			run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeFailed, Verdict: v1alpha1.VerdictAuthor,
				Cause: "step test of task unit exited with code 1", Text: "the report"}
		}), "", false, "Failed: step test of task unit exited with code 1", Completed, Failure},
		"refused": {later(func(run *v1alpha1.Run) {
			run.Refused = &v1alpha1.Refusal{Reason: fault.ReasonDenied, Message: "images must be signed"}
		}), "", false, "Not started: rejected by the Kubernetes API server", Completed, Failure},
	} {
		e := event(v1alpha1.DispositionRuns)
		if c.cancel {
			key, value, err := (&v1alpha1.Cancellation{By: "rita", Why: "rita asked for it"}).CancelsAs("comment-9")
			if err != nil {
				t.Fatal(err)
			}
			e.Annotations = map[string]string{key: value}
		}
		state := RunState{Run: c.run, Links: consoleLinks()}
		state.Links.Other = func(run string) string { return "https://console/" + run }
		if c.reason != "" {
			state.Wait = waitFor("Throttled", c.reason, "attempt 1, PipelineRun build-abc, failed")
		}
		got := Desired(Input{Application: "Plumbline CI", Event: e, Runs: []RunState{state}})[0]
		golden(t, "check-attempt-"+name, got.Title+"\n\n"+got.Summary+"\n\n"+got.Text)
		if got.State != c.state || got.Conclusion != c.conclude || got.Title != c.title || got.Key != "build-abc" ||
			got.ExternalID != "build-abc" {
			t.Errorf("%s: %s %q %q of %s", name, got.State, got.Conclusion, got.Title, got.Key)
		}
	}
}

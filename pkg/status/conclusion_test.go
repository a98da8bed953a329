// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const unavailableMessage = "Internal error occurred: failed calling webhook \"validation.webhook.pipeline.tekton.dev\": failed to call webhook: Post \"https://w.svc:443/v\": dial tcp 10.96.0.1:443: connect: connection refused"

func event(disposition v1alpha1.Disposition, accepted ...v1alpha1.Check) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: "push-0123"}}
	e.Spec.Sender, e.Spec.Trigger = "mallory", v1alpha1.TriggerPullRequest
	e.Spec.Provider, e.Spec.Project.URL = "github", "https://github.com/acme/app"
	e.Status.Disposition, e.Status.Checks = disposition, accepted
	e.Status.Plan = &v1alpha1.Plan{
		Reason: "NamespaceTerminating", Message: "the namespace ci is being deleted", HeadSHA: commit,
		Decisions: []v1alpha1.Decision{{File: ".tekton/build.yaml", Pipeline: "build"}},
	}
	return e
}

func planned() v1alpha1.Run {
	return v1alpha1.Run{Pipeline: "build", Namespace: "ci", Name: "build-abc"}
}

func created() v1alpha1.Run {
	run := planned()
	run.UID = "1"
	return run
}

func refusedRun(reason, message string) v1alpha1.Run {
	run := planned()
	run.Refused = &v1alpha1.Refusal{Reason: reason, Message: message}
	return run
}

func endedRun(outcome v1alpha1.Outcome) v1alpha1.Run {
	run := created()
	run.Result = &v1alpha1.Result{
		Outcome: outcome, Reason: "R", Message: "M", StartedAt: at(0), CompletedAt: at(9), Text: "the report",
	}
	return run
}

func waitFor(class, reason, message string) *v1alpha1.Wait {
	return &v1alpha1.Wait{Step: "create/build-abc", Class: class, Reason: reason, Message: message, Since: *at(0)}
}

type desiredCase struct {
	name  string
	run   RunState
	title string
	state State
	end   Conclusion
	// golden names the file that holds the summary and the text.
	golden string
	// words are what a service shows that has one line.
	words string
}

func TestDesiredConcluded(t *testing.T) {
	brief := endedRun(v1alpha1.OutcomeFailed)
	brief.Result.Brief = "task unit: why"
	deleted := endedRun(v1alpha1.OutcomeDeleted)
	deleted.Result.Text = ""
	terminating := planned()
	terminating.Result = &v1alpha1.Result{
		Outcome: v1alpha1.OutcomeCancelled, Reason: "NamespaceTerminating", Message: "ci is being terminated",
	}
	unmatched := planned()
	unmatched.Result = &v1alpha1.Result{
		Outcome: v1alpha1.OutcomeSkipped, Reason: v1alpha1.ReasonUnmatched,
		Message: "on-path-change [src/**] matches no changed file (changed: `a`.md)",
	}
	hostile := refusedRun("AdmissionDenied", "two\n```\nfences <b>&\"quotes\"")
	hostile.Pipeline = "b<img src=x>`[x](y)@all"
	checkDesired(t, []desiredCase{
		{"a refusal by the API server is a failure with its words", RunState{
			Run: refusedRun("AdmissionDenied",
				`admission webhook "w" denied the request: validation failed: missing field(s): spec.x`), Links: consoleLinks(),
		}, "Not started: rejected by the admission webhook w", Completed, Failure, "refused",
			`admission webhook "w" denied the request: validation failed: missing field(s): spec.x`},
		{"a refusal before creation is a failure with its words", RunState{
			Run: refusedRun("BadYAML", ".tekton/build.yaml:3: did not find expected key"),
		}, "Not started: invalid .tekton/build.yaml", Completed, Failure, "invalid", ".tekton/build.yaml:3: did not find expected key"},
		{
			"nothing in a refusal can leave its place",
			RunState{Run: hostile},
			"Not started: rejected by the Kubernetes API server",
			Completed,
			Failure,
			"hostile",
			hostile.Refused.Message,
		},
		{"a run that succeeded is a success", RunState{Run: endedRun(v1alpha1.OutcomeSucceeded), Links: consoleLinks()},
			"Success", Completed, Success, "succeeded", ""},
		{"a run that failed is a failure", RunState{Run: brief}, "Failed", Completed, Failure, "failed", "task unit: why"},
		{"a result that an older version stored has Tekton's message", RunState{Run: endedRun(v1alpha1.OutcomeFailed)},
			"Failed", Completed, Failure, "failed", "M"},
		{"a report of a run that ended repeats it too", RunState{Run: noted(endedRun(v1alpha1.OutcomeSucceeded))}, "Success",
			Completed, Success, "noted-ended", ""},
		{"a run that was cancelled is cancelled", RunState{Run: endedRun(v1alpha1.OutcomeCancelled)}, "Cancelled", Completed,
			Cancelled, "cancelled", ""},
		{"E3: a run that was deleted is cancelled and says so", RunState{Run: deleted}, "Cancelled", Completed, Cancelled,
			"deleted", "the PipelineRun was deleted"},
		{"a pipeline that is not started is skipped", RunState{Run: unmatched, Links: consoleLinks()},
			"Skipped: on-path-change [src/**] matches no changed file (changed: `a`.md)", Completed, Skipped, "unmatched", ""},
		{"a run whose namespace went away before it was created is cancelled", RunState{Run: terminating}, "Cancelled",
			Completed, Cancelled, "terminating", "ci is being terminated"},
	})
}

func TestDesiredOpen(t *testing.T) {
	const again = "Plumbline tries again by itself. You don't need to do anything."
	both := refusedRun("AdmissionDenied", "judged again")
	both.UID = "1"
	pr := func(specStatus pipelinev1.PipelineRunSpecStatus, status corev1.ConditionStatus,
		reason string) *pipelinev1.PipelineRun {
		p := pipelineRun(succeeded(status, reason, ""))
		p.Spec.Status = specStatus
		return p
	}
	checkDesired(t, []desiredCase{
		{"a run that is not created waits", RunState{Run: planned()}, "Accepted, starting soon", Queued, "", "planned", ""},
		{"it says that it waits for the cluster's webhook",
			RunState{Run: planned(), Wait: waitFor("Transient", "AdmissionWebhookUnavailable", unavailableMessage)},
			"Waiting for the cluster since 03:04 UTC on 2 January", Queued, "", "waiting-webhook",
			"The webhook validation.webhook.pipeline.tekton.dev of the cluster does not answer; " + again},
		{
			"it names the quota it waits for",
			RunState{Run: planned(),
				Wait: waitFor("Throttled", "QuotaExceeded", "x is forbidden: exceeded quota: runs, requested: a=1, limited: a=1")},
			"Waiting for quota runs since 03:04 UTC on 2 January",
			Queued,
			"",
			"waiting-quota",
			"The ResourceQuota runs is exhausted; the pipeline starts when other runs have finished. You don't need to do anything.",
		},
		{"it says that someone must act",
			RunState{Run: planned(), Wait: waitFor("Operator", "Forbidden", `User "x" cannot create`)},
			"Waiting for your cluster administrators since 03:04 UTC on 2 January", Queued, "", "waiting-operator",
			"Plumbline lacks a permission in namespace ci. " + waitNotAuthor + " " + actAdministrators},
		{
			"it says that it waits for the Git service",
			RunState{Run: planned(), Wait: waitFor("Throttled", "RateLimited", "POST /x: 403 `limit` exceeded")},
			"Waiting for GitHub since 03:04 UTC on 2 January",
			Queued,
			"",
			"waiting-git",
			"The rate limit of GitHub is reached; the pipeline starts by itself when it is lifted. You don't need to do anything.",
		},
		{"what its reader should know of the plan is repeated", RunState{Run: noted(created())}, "CI has Started", InProgress,
			"", "noted", ""},
		{"a run that exists is in progress although it is not in any cache", RunState{Run: created(), Links: consoleLinks()},
			"CI has Started", InProgress, "", "started", ""},
		{"without a console there is no link", RunState{Run: created()}, "CI has Started", InProgress, "",
			"started-no-console", ""},
		{"a wait that is left over does not matter once it exists", RunState{Run: created(),
			Wait: waitFor("Transient", "X", "x")}, "CI has Started", InProgress, "", "started-no-console", ""},
		{"a refusal of a run that exists does not matter", RunState{Run: both}, "CI has Started", InProgress, "",
			"started-no-console", ""},
		{"a run that somebody else holds back is queued", RunState{Run: created(),
			PipelineRun: pr(pipelinev1.PipelineRunSpecStatusPending, corev1.ConditionUnknown, "PipelineRunPending")}, "Queued",
			Queued, "", "held-back", ""},
		{"E2: a run that is to be cancelled is in progress until it ended", RunState{
			Run: created(), PipelineRun: pr(pipelinev1.PipelineRunSpecStatusCancelled, corev1.ConditionUnknown, "Running"),
		}, "CI has Started", InProgress, "", "started-no-console", ""},
		{"E2: so is one that is to be cancelled gracefully", RunState{
			Run: created(), PipelineRun: pr(pipelinev1.PipelineRunSpecStatusCancelledRunFinally, corev1.ConditionUnknown,
				"CancelledRunningFinally"),
		}, "CI has Started", InProgress, "", "started-no-console", ""},
		{"E2: so is one that is to be stopped gracefully", RunState{
			Run: created(), PipelineRun: pr(pipelinev1.PipelineRunSpecStatusStoppedRunFinally, corev1.ConditionUnknown,
				"StoppedRunningFinally"),
		}, "CI has Started", InProgress, "", "started-no-console", ""},
		{"a terminal state that is not stored yet is not sent", RunState{
			Run: created(), PipelineRun: pr("", corev1.ConditionFalse, "Failed"),
		}, "CI has Started", InProgress, "", "started-no-console", ""},
	})
}

func checkDesired(t *testing.T, cases []desiredCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			checks := Desired(Input{
				Application: "Plumbline CI", Event: event(v1alpha1.DispositionRuns), Runs: []RunState{c.run},
			})
			if len(checks) != 1 {
				t.Fatalf("got %d checks, want 1", len(checks))
			}
			got := checks[0]
			golden(t, "check-"+c.golden, got.Summary+"\n\n"+got.Text)
			want := Check{Key: "build-abc", ExternalID: "build-abc", Name: "Plumbline CI / " + c.run.Run.Pipeline,
				State: c.state, Conclusion: c.end, Title: c.title, Words: c.words}
			if result := c.run.Run.Result; result != nil {
				want.StartedAt, want.CompletedAt = result.StartedAt, result.CompletedAt
			}
			want.Yields = c.golden == "unmatched"
			if c.run.Run.UID != "" {
				want.DetailsURL = c.run.Links.Run
			}
			got.Summary, got.Text = "", ""
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Desired (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesiredByDisposition(t *testing.T) {
	unseen, seen := planned(), created()
	unseen.Name, seen.Name = "unseen", "seen"
	done := endedRun(v1alpha1.OutcomeSucceeded)
	done.Name = "done"
	runs := []RunState{{Run: unseen}, {Run: seen}, {Run: done}}
	cases := []struct {
		name  string
		event *v1alpha1.GitEvent
		want  []string
	}{
		{"an event that is ignored shows nothing", event(v1alpha1.DispositionIgnored), nil},
		{"an event that was superseded before it was planned shows nothing", event(v1alpha1.DispositionSuperseded), nil},
		{"an event that waits for approval shows one queued check", event(v1alpha1.DispositionPending),
			[]string{"event queued "}},
		{"an event whose author asked for no CI shows one check that was skipped", event(v1alpha1.DispositionSkipped),
			[]string{"event completed skipped"}},
		{"an event that is refused shows nothing new but what ended", event(v1alpha1.DispositionRefused),
			[]string{"done completed success"}},
		{"what was shown of a refused event is cancelled, what ended keeps its verdict",
			event(v1alpha1.DispositionRefused, v1alpha1.Check{Key: "seen", Accepted: "x"}, v1alpha1.Check{Key: "done", ID: "1"},
				v1alpha1.Check{Key: "event", Intent: true}, v1alpha1.Check{Key: "unseen"}),
			[]string{"seen completed cancelled", "done completed success", "event completed cancelled"}},
		{"an event with runs shows each of them", event(v1alpha1.DispositionRuns),
			[]string{"unseen queued ", "seen in_progress ", "done completed success"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, check := range Desired(Input{Application: "Plumbline CI", Event: c.event, Runs: runs}) {
				got = append(got, check.Key+" "+string(check.State)+" "+string(check.Conclusion))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Desired (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesiredPending(t *testing.T) {
	waits := event(v1alpha1.DispositionPending)
	waits.Status.Plan = &v1alpha1.Plan{
		HeadSHA: "0123456789012345678901234567890123456789", Message: "The author has no write access.",
	}
	got := Desired(Input{Application: "Plumbline CI", Event: waits})[0]
	golden(t, "check-pending", got.Summary+"\n\n"+got.Text)
	want := Check{Key: EventKey, Name: "Plumbline CI", ExternalID: ApprovalID(waits), FormerExternalID: formerID(waits),
		Shared: true, State: Queued, Title: "Pending approval, waiting for an /ok-to-test"}
	got.Summary, got.Text = "", ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Desired (-want +got):\n%s", diff)
	}
}

func TestDesiredSkipped(t *testing.T) {
	got := Desired(Input{Application: "Plumbline CI", Event: event(v1alpha1.DispositionSkipped)})[0]
	golden(t, "check-skipped", got.Summary+"\n\n"+got.Text)
	want := Check{Key: EventKey, Name: "Plumbline CI", ExternalID: "push-0123", State: Completed, Conclusion: Skipped,
		Title: "CI Skipped"}
	got.Summary, got.Text = "", ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Desired (-want +got):\n%s", diff)
	}
}

func noted(run v1alpha1.Run) v1alpha1.Run {
	run.Note = "The list was cut <b>."
	return run
}

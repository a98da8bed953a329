// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/slots"
)

// The titles and summaries are those people and tools know from Pipelines-as-Code.
const (
	titleStarted   = "CI has Started"
	titleSuccess   = "Success"
	titleFailed    = "Failed"
	titleCanceled  = "Cancelled"
	titleRefused   = "pipelinerun start failure"
	titleEnding    = "Cancelling"
	titlePending   = "Pending approval, waiting for an /ok-to-test"
	titleUncreated = "Waiting to be created"
	titleSkipped   = "CI Skipped"
	titleApproved  = "Approved"
	titleDecided   = "Decided"
)

// summary prefixes words with the application and, if there is one, the pipeline.
func (in Input) summary(pipeline, words string) string {
	if pipeline == "" {
		return plain(in.Application) + " " + words
	}
	return plain(in.Application) + "/" + plain(pipeline) + " " + words
}

// conclude sets everything but the text.
func (in Input) conclude(c *Check, pipeline string, conclusion Conclusion) {
	c.State, c.Conclusion = Completed, conclusion
	switch conclusion {
	case Success:
		c.Title, c.Summary = titleSuccess, in.summary(pipeline, "has <b>successfully</b> validated your commit.")
	case Failure:
		c.Title, c.Summary = titleFailed, in.summary(pipeline, "has <b>failed</b>.")
	case Skipped:
		c.Title, c.Summary = titleDecided, in.summary(pipeline, "does not wait any more.")
	default:
		c.Title, c.Summary = titleCanceled, in.summary(pipeline, "has been <b>cancelled</b>.")
	}
}

func (in Input) ended(c *Check, run RunState) {
	result := run.Run.Result
	in.conclude(c, run.Run.Pipeline, Conclude(result))
	c.StartedAt, c.CompletedAt = result.StartedAt, result.CompletedAt
	c.Text = result.Text
	if c.Conclusion == Failure {
		c.Words = cmp.Or(result.Brief, result.Message, result.Reason)
	}
	in.cancelled(c, run)
	switch {
	case c.Text != "":
	case result.Outcome == v1alpha1.OutcomeDeleted:
		c.Text, c.Words = "PipelineRun "+plain(run.Run.Name)+" was deleted", "the PipelineRun was deleted"
	case run.Run.UID == "":
		c.Words = cmp.Or(result.Message, result.Reason)
		c.Text = "PipelineRun " + plain(run.Run.Name) + " was not created: " + code(c.Words)
	default:
		c.Text = code(cmp.Or(result.Message, result.Reason))
	}
}

// started carries no start time: it would come and go with what is known of the PipelineRun, and
// each change of a check is a request. The concluded check carries both times.
func (in Input) started(c *Check, run RunState) {
	if in.cancelling(c, run) {
		return
	}
	if pr := run.PipelineRun; pr != nil && pr.Spec.Status == pipelinev1.PipelineRunSpecStatusPending {
		c.State, c.Title = Queued, "Queued"
		c.Summary = in.summary(run.Run.Pipeline, "is queued.")
		c.Text = render("queuing.md", placeOf(run))
		return
	}
	c.State, c.Title = InProgress, titleStarted
	c.Summary = in.summary(run.Run.Pipeline, "is running.")
	c.Text = render("starting.md", placeOf(run))
}

func (in Input) refused(c *Check, run RunState) {
	in.conclude(c, run.Run.Pipeline, Failure)
	c.Title, c.Words = titleRefused, run.Run.Refused.Message
	c.DetailsURL = "" // there is nothing to look at
	template := "invalid.md"
	data := refusal{
		Pipeline: plain(cmp.Or(run.Run.Pipeline, run.Run.Name)), Name: plain(run.Run.Name),
		Namespace: plain(run.Run.Namespace), Words: block(run.Run.Refused.Message),
	}
	switch reason := run.Run.Refused.Reason; reason {
	case fault.ReasonDenied, fault.ReasonInvalid, fault.ReasonTooLarge:
		template = "created.md"
		data.Refuser, data.Advice = refuser(reason, run.Run.Refused.Message)
	}
	c.Text = render(template, data)
}

// waiting says in one sentence what the run waits for.
func (in Input) waiting(c *Check, run RunState) {
	c.State, c.Title = Queued, titleUncreated
	c.Summary = in.summary(run.Run.Pipeline, "is queued.")
	c.Text = titleUncreated + "."
	c.DetailsURL = "" // there is nothing to look at yet
	if run.Wait == nil {
		return
	}
	if run.Wait.Reason == fault.ReasonConcurrencyLimit {
		place, _, _ := strings.Cut(run.Wait.Message, " in the queue")
		c.Title = "Queued" + since(run.Wait) + ": " + plain(place)
		c.Text = "Waiting for a slot" + since(run.Wait) + ": " + slotsText(run) + "."
		return
	}
	c.Title = "Waiting for " + subject(run) + since(run.Wait) + " (" + plain(run.Wait.Reason) + ")"
	c.Text = c.Title + ": " + code(run.Wait.Message)
	if ofPlan(run) {
		c.Text = "Which pipelines start is not decided yet. " + c.Text
	}
}

// ofPlan reports whether a run stands for the plan: its check shows what the plan waits for.
func ofPlan(run RunState) bool {
	return run.Run.Unresolved && run.Run.Pipeline == pipelinesascode.Definitions
}

// since says when a wait began. It has no words of how long that is: a check whose words change
// would be sent at each retry.
func since(wait *v1alpha1.Wait) string {
	if wait.Since.IsZero() {
		return ""
	}
	return wait.Since.UTC().Format(" since 15:04 UTC on 2 January")
}

// slots returns the position of a run in the queue, with links to the runs that have the slots.
func slotsText(run RunState) string {
	place, names, found := strings.Cut(run.Wait.Message, slots.Have)
	if !found || run.Links.Other == nil {
		return plain(run.Wait.Message)
	}
	all := strings.Split(names, ", ")
	for i, part := range all {
		name, more, _ := strings.Cut(part, " ")
		all[i] = strings.TrimSpace(fmt.Sprintf("[%s](%s) %s", plain(name), target(run.Links.Other(name)), plain(more)))
	}
	return plain(place+slots.Have) + " " + strings.Join(all, ", ")
}

// subject says who or what must change before the run can be created.
func subject(run RunState) string {
	wait := run.Wait
	if ofPlan(run) {
		return "the Git service"
	}
	if run.Run.Unresolved && wait.Class != fault.Operator.String() {
		return "what the pipeline refers to"
	}
	switch wait.Reason {
	case fault.ReasonQuota:
		if name := quotaName(wait.Message); name != "" {
			return "quota " + plain(name)
		}
		return "quota"
	case fault.ReasonRateLimited, fault.ReasonSecondaryRateLimited, fault.ReasonGitUnavailable,
		fault.ReasonGitUnreachable, fault.ReasonGitConflict, fault.ReasonCommitUnknown, fault.ReasonNotConfirmed:
		return "the Git service"
	case fault.ReasonCredentialsRefused, fault.ReasonPermissionMissing, fault.ReasonGitGone, fault.ReasonGitMoved:
		return "access to the Git service"
	}
	if wait.Class == fault.Operator.String() {
		return "an operator of the cluster"
	}
	return "the cluster"
}

// skipped is what a commit shows whose author asked for no CI.
func skipped(in Input) Check {
	return Check{
		Key: EventKey, Name: in.Application, ExternalID: in.Event.Name,
		State: Completed, Conclusion: Skipped, Title: titleSkipped, Summary: plain(in.Application) + " - CI has been skipped",
		Text: "Commit contains a skip CI command. Use /test or /retest to manually trigger CI if needed.",
	}
}

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
		c.Title, c.Summary = titleSuccess, in.summary(pipeline, saysSucceeded)
	case Failure:
		c.Title, c.Summary = titleFailed, in.summary(pipeline, saysFailed)
	case Skipped:
		c.Title, c.Summary = titleDecided, in.summary(pipeline, saysDecided)
	default:
		c.Title, c.Summary = titleCanceled, in.summary(pipeline, saysCancelled)
	}
}

func (in Input) ended(c *Check, run RunState) {
	result := run.Run.Result
	if result.Reason == v1alpha1.ReasonUnmatched {
		in.unmatched(c, run)
		return
	}
	in.conclude(c, run.Run.Pipeline, conclusionOf(result))
	c.StartedAt, c.CompletedAt = result.StartedAt, result.CompletedAt
	c.Text = result.Text
	if c.Conclusion == Failure {
		c.Title = failedTitle(result.Verdict, result.Cause)
		c.Words = result.Brief
		if result.Cause == "" { // the title says nothing
			c.Words = cmp.Or(result.Brief, result.Message, result.Reason)
		}
	}
	in.cancelled(c, run)
	switch {
	case c.Text != "":
	case result.Outcome == v1alpha1.OutcomeDeleted:
		c.Text, c.Words = fmt.Sprintf(textDeleted, plain(run.Run.Name)), wordsDeleted
		if url := target(run.Links.Archive); url != "" {
			c.Text += ". " + fmt.Sprintf(textArchived, url)
			c.DetailsURL = run.Links.Archive // the console has no page of it any more
		}
	case run.Run.UID == "":
		c.Words = cmp.Or(result.Message, result.Reason)
		c.Text = fmt.Sprintf(textNotCreated, plain(run.Run.Name), code(c.Words))
	default:
		c.Text = code(cmp.Or(result.Message, result.Reason))
	}
	withLog(c, result.Log)
}

// unmatched sets the check of a pipeline that the event does not start. The title is all that lists
// of checks show, so it has the clause.
func (in Input) unmatched(c *Check, run RunState) {
	clause := run.Run.Result.Message
	c.State, c.Conclusion, c.Yields = Completed, Skipped, true
	c.Title = titleUnmatched + ": " + visible(clause)
	c.Summary = in.summary(run.Run.Pipeline, saysUnmatched)
	c.Text = textUnmatched + "\n\n" + code(clause)
	c.DetailsURL = "" // there is nothing to look at
}

// started sets the check of a run that exists. It sets no start time: that depends on whether the
// PipelineRun is in the cache, and each change of a check is a request to the Git service. The
// concluded check has both times.
func (in Input) started(c *Check, run RunState) {
	if in.cancelling(c, run) {
		return
	}
	if pr := run.PipelineRun; pr != nil && pr.Spec.Status == pipelinev1.PipelineRunSpecStatusPending {
		c.State, c.Title = Queued, titleQueued
		c.Summary = in.summary(run.Run.Pipeline, saysQueued)
		c.Text = render("queuing.md", placeOf(run))
		return
	}
	c.State, c.Title = InProgress, titleStarted
	c.Summary = in.summary(run.Run.Pipeline, saysRunning)
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

// waiting sets the check of a run that is not created yet: one sentence says what it waits for.
func (in Input) waiting(c *Check, run RunState) {
	c.State, c.Title = Queued, titleUncreated
	c.Summary = in.summary(run.Run.Pipeline, saysQueued)
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
		c.Text = textUndecided + " " + c.Text
	}
}

// ofPlan reports whether a run is a placeholder whose check shows what planning waits for.
func ofPlan(run RunState) bool {
	return run.Run.Unresolved && run.Run.Pipeline == pipelinesascode.Definitions
}

// since returns when a wait began. It does not say how long ago that was: a check with changing
// words would be sent at each retry.
func since(wait *v1alpha1.Wait) string {
	if wait.Since.IsZero() {
		return ""
	}
	return wait.Since.UTC().Format(" since 15:04 UTC on 2 January")
}

// slotsText returns the run's position in the queue, with links to the runs that have the slots.
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

// subject returns who or what must change before the run can be created.
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

// skipped returns the check of a commit whose author asked for no CI.
func skipped(in Input) Check {
	return Check{
		Key: EventKey, Name: in.Application, ExternalID: in.Event.Name,
		State: Completed, Conclusion: Skipped, Title: titleSkipped, Summary: plain(in.Application) + " " + saysSkipped,
		Text: textSkipped,
	}
}

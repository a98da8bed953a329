// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
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
		c.Title, c.Summary = diagnosis.Title("", ""), in.summary(pipeline, saysFailed)
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
		c.Title = diagnosis.Title(result.Verdict, result.Cause)
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

// skipped returns the check of a commit whose author asked for no CI.
func skipped(in Input) Check {
	return Check{
		Key: EventKey, Name: in.Application, ExternalID: in.Event.Name,
		State: Completed, Conclusion: Skipped, Title: titleSkipped, Summary: plain(in.Application) + " " + saysSkipped,
		Text: textSkipped,
	}
}

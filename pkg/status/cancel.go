// SPDX-License-Identifier: Apache-2.0

package status

import "github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"

// cancelling says of a run that somebody wants to end that it has not ended yet, and reports
// whether it is one. It is never called cancelled before it is over: it may still succeed.
func (in Input) cancelling(c *Check, run RunState) bool {
	why := in.Event.Cancelled(run.Run.Pipeline)
	if why == nil {
		return false
	}
	c.State, c.Title = InProgress, titleEnding
	c.Summary = in.summary(run.Run.Pipeline, "is being cancelled.")
	c.Text = "This run is being cancelled: " + plain(why.Why) + "."
	if run.Refused != nil {
		c.Text += " It goes on, because that has been refused" + since(
			run.Refused,
		) + " (" + plain(
			run.Refused.Reason,
		) + "), and is tried again: " + code(
			run.Refused.Message,
		)
	}
	return true
}

// cancelled says of a run that was cancelled, and that exists, who wanted that. What was never
// created says so in its result.
func (in Input) cancelled(c *Check, run RunState) {
	why := in.Event.Cancelled(run.Run.Pipeline)
	if why == nil || run.Run.UID == "" || run.Run.Result.Outcome != v1alpha1.OutcomeCancelled {
		return
	}
	c.Words = why.Why
	rest := c.Text
	if rest == "" {
		rest = code(run.Run.Result.Message)
	}
	c.Text = "This run was cancelled: " + plain(why.Why) + ".\n\n" + rest
}

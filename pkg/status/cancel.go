// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// cancelling sets the check of a run that is to be cancelled and has not finished. It reports
// whether the run is one. The check does not say "cancelled" before the run has finished: it may
// still succeed.
func (in Input) cancelling(c *Check, run RunState) bool {
	why := in.Event.Cancelled(run.Run.Pipeline)
	if why == nil {
		return false
	}
	c.State, c.Title = InProgress, titleEnding
	c.Summary = in.summary(run.Run.Pipeline, saysCancelling)
	c.Text = fmt.Sprintf(textCancelling, plain(why.Why))
	if refused := run.CancelRefused; refused != nil {
		c.Text += " " + fmt.Sprintf(textCancelRefused, since(refused), actOn(refused)) + "\n\n" + details(refused)
	}
	return true
}

// cancelled adds who cancelled a run that existed. The result of a run that was never created says
// so itself.
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
	c.Text = fmt.Sprintf(textCancelled, plain(why.Why)) + "\n\n" + rest
}

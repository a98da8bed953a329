// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"strings"
)

// attempts adds to the check of a run which PipelineRuns failed before because of the cluster. The
// check of a run that is not finished stays in progress: some Git services accept no way back.
func (in Input) attempts(c *Check, run RunState) {
	n, of := run.Run.Attempt(), max(run.Run.Attempt(), int(run.Run.InfrastructureRetries)+1)
	var lines []string
	for i, earlier := range run.Run.Attempts {
		cause := cmp.Or(earlier.Cause, wordsNoReason)
		lines = append(lines, fmt.Sprintf(textEarlierAttempt, i+1, of, linked(run.Links, earlier.Name), plain(cause)))
	}
	switch exists := run.Run.UID != ""; {
	case exists && c.State != Completed:
		lines = append(lines, fmt.Sprintf(textThisAttempt, n, of))
	case exists:
		lines = append(lines, fmt.Sprintf(textLastAttempt, n, of, linked(run.Links, run.Run.Name)))
	case c.State == Completed:
		lines = append(lines, fmt.Sprintf(textNoAttempt, n, of))
	default:
		lines = append(lines, fmt.Sprintf(textNextAttempt, n, of))
	}
	c.Text = strings.Join(lines, "\n") + "\n\n" + c.Text
	if c.State == Completed {
		return
	}
	c.State = InProgress
	if in.Event.Cancelled(run.Run.Pipeline) == nil {
		cause := cmp.Or(run.Run.Attempts[n-2].Cause, wordsNoReason)
		c.Title, c.Summary = fmt.Sprintf(titleAttempt, n, of, n-1, cause), in.summary(run.Run.Pipeline, saysRunning)
	}
}

// linked returns the name of a PipelineRun, which leads to the console if there is one.
func linked(links Links, name string) string {
	if links.Other == nil {
		return plain(name)
	}
	return fmt.Sprintf("[%s](%s)", plain(name), target(links.Other(name)))
}

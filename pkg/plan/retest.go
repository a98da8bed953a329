// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/plan/rerun"
)

// retest is what /retest decides by.
type retest struct {
	// history is nil until it is needed; err is why it could not be read.
	history *rerun.History
	err     error
	// skipped is how many pipelines are not started again.
	skipped int
}

// declineStarted declines a selected pipeline that /retest without names, or an approval, does not
// start again. The records are read once, and only if something is selected.
func (d *draft) declineStarted(ctx context.Context, c *candidate) error {
	if !d.onlyUnsuccessful() {
		return d.declineApproved(ctx, c)
	}
	if d.retest.history == nil {
		all, err := d.recorded(ctx)
		d.retest.history, d.retest.err = rerun.NewHistory(d.head.SHA, d.ofRef(all)), err
		// An event that is being planned now may not know about the approval.
		d.retest.history.EventUnplanned = d.retest.history.EventUnplanned && d.Approval == nil
	}
	if d.retest.err != nil {
		return d.retest.err
	}
	why := d.retest.history.WhySkipped(d.nameOf(c.definition))
	if why == "" {
		return nil
	}
	d.retest.skipped++
	return fault.Ignoredf(reasonNotSelected, "%s", why)
}

// declineApproved declines what the comment that approved the commit has started, for an event that
// happened before the comment but is planned after it (a pull request that was opened during an
// outage, for example). An event in the comment's second counts as later: a comment approves only
// what was the head in an earlier second.
func (d *draft) declineApproved(ctx context.Context, c *candidate) error {
	if d.Approval == nil || d.onRequest() || d.spec.Comment != nil || d.spec.EventType == match.LabelEvent {
		return nil
	}
	all, err := d.recorded(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.Event.Name != d.Approval.Event || !d.spec.Happened().Before(r.Event.Happened()) {
			continue
		}
		started := func(run v1alpha1.Run) bool { return run.Pipeline == d.nameOf(c.definition) && !run.Skipped() }
		if slices.ContainsFunc(r.Event.Status.Runs, started) {
			return fault.Ignoredf(
				reasonNotSelected,
				"%s has approved the commit since then, and the event of that approval, %s, has started it",
				d.Approval.By,
				r.Event.Name,
			)
		}
	}
	return nil
}

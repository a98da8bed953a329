// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/plan/rerun"
)

// declineStarted declines a selected pipeline that /retest without names, or an approval, does not
// start again. What ran is read once, and only if something is selected.
func (d *draft) declineStarted(ctx context.Context, c *candidate) error {
	if !d.onlyUnsuccessful() {
		return d.declineApproved(ctx, c)
	}
	d.retest.Read, d.retest.PaC = d.ran, d.PaCRuns
	d.retest.Of = rerun.PaCRunsOf(d.Repository.Name, d.spec, d.head.SHA)
	why, err := d.retest.WhySkipped(ctx, d.nameOf(c.definition))
	if why == "" || err != nil {
		return err
	}
	return fault.Ignoredf(reasonNotSelected, "%s", why)
}

// ran returns the history of the commit.
func (d *draft) ran(ctx context.Context) (*rerun.History, error) {
	all, err := d.recorded(ctx)
	ran := rerun.NewHistory(d.head.SHA, d.ofRef(all))
	// An event that is being planned now may not know about the approval.
	ran.EventUnplanned = ran.EventUnplanned && d.Approval == nil
	return ran, err
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
	if !rerun.StartedBy(all, d.Approval.Event, d.spec.Happened(), d.nameOf(c.definition)) {
		return nil
	}
	return fault.Ignoredf(reasonNotSelected,
		"%s has approved the commit since then, and the event of that approval, %s, has started it", d.Approval.By,
		d.Approval.Event)
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/match"
	"github.com/plumbline-ci/plumbline/pkg/records"
)

// history is what was recorded of the pipelines on the event's commit.
type history struct {
	// latest is the newest run of each pipeline, by the name of its check. One that is not over is newer than all that are: what is
	// received first may be planned last.
	latest map[string]*v1alpha1.Run
	// over tells of each latest run whether the event that started it has ended.
	over map[string]bool
	// begins is true while the event of the commit itself is not planned: it is about to start what never ran.
	begins bool
	err    error
}

// newHistory takes the records of the event's subject, oldest first.
func newHistory(sha string, all []records.Record) *history {
	h := &history{latest: map[string]*v1alpha1.Run{}, over: map[string]bool{}}
	for _, r := range all {
		if r.SHA() != sha {
			continue
		}
		event := r.Event
		h.begins = h.begins || event.Status.Plan == nil && !event.Settled() && event.Spec.Comment == nil && event.Spec.EventType != match.LabelEvent
		for i := range event.Status.Runs {
			run := &event.Status.Runs[i]
			if h.running(run.Pipeline) {
				continue
			}
			h.latest[run.Pipeline], h.over[run.Pipeline] = run, event.Settled()
		}
	}
	return h
}

// running tells whether the latest run of a pipeline is not over.
func (h *history) running(pipeline string) bool {
	run := h.latest[pipeline]
	return run != nil && run.Refused == nil && run.Result == nil && !h.over[pipeline]
}

// leaves says why a pipeline is not started again, "" if it is: its latest run has failed, was cancelled, refused or deleted, or there
// is none.
func (h *history) leaves(pipeline string) string {
	run := h.latest[pipeline]
	switch {
	case run == nil && h.begins:
		return "the event of the commit itself starts it as soon as it is planned"
	case run == nil, run.Refused != nil:
		return ""
	case run.Result != nil && run.Result.Outcome == v1alpha1.OutcomeSucceeded:
		return fmt.Sprintf("its latest run on this commit, %s, succeeded", run.Name)
	case h.running(pipeline):
		return fmt.Sprintf("its latest run on this commit, %s, is not over", run.Name)
	}
	return ""
}

// leave declines a selected pipeline that /retest without names, or an approval, does not start again. What was recorded is asked for
// once, and only if something is selected.
func (d *draft) leave(ctx context.Context, c *candidate) error {
	if !d.startsFailed() {
		return d.leaveToApproval(ctx, c)
	}
	if d.history == nil {
		all, err := d.recorded(ctx)
		d.history = newHistory(d.head.SHA, d.ofRef(all))
		d.history.err = err
		// What may be planned at this moment may not know of the approval.
		d.history.begins = d.history.begins && d.approval == nil
	}
	if d.history.err != nil {
		return d.history.err
	}
	why := d.history.leaves(d.nameOf(c.definition))
	if why == "" {
		return nil
	}
	d.left++
	return fault.Ignoredf("NotSelected", "%s", why)
}

// leaveToApproval declines what the comment that has approved the commit has started, of an event that happened before it and is planned
// after it: a pull request that was opened during an outage, say. What happened in the comment's second came after it: a comment approves only
// what was the head in a second before.
func (d *draft) leaveToApproval(ctx context.Context, c *candidate) error {
	if d.approval == nil || d.asked() || d.spec.Comment != nil || d.spec.EventType == match.LabelEvent {
		return nil
	}
	all, err := d.recorded(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.Event.Name != d.approval.Event || !d.spec.Happened().Before(r.Event.Spec.Happened()) {
			continue
		}
		if slices.ContainsFunc(r.Event.Status.Runs, func(run v1alpha1.Run) bool { return run.Pipeline == d.nameOf(c.definition) }) {
			return fault.Ignoredf("NotSelected", "%s has approved the commit since then, and the event of that, %s, has started it", d.approval.By, r.Event.Name)
		}
	}
	return nil
}

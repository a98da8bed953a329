// SPDX-License-Identifier: Apache-2.0

package rerun

import (
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// History has the recorded runs of one commit.
type History struct {
	// latest is the newest run of each pipeline, by the name of its check. An unfinished run counts
	// as newer than all finished ones, because an event that was received first may be planned
	// last.
	latest map[string]*latestRun
	// EventUnplanned is true while the commit's own event is not planned: it is about to start what
	// never ran.
	EventUnplanned bool
}

// NewHistory returns the history of a commit from the records of the event's subject, oldest first.
func NewHistory(sha string, all []history.Record) *History {
	h := &History{latest: map[string]*latestRun{}}
	for _, r := range all {
		if r.SHA() != sha {
			continue
		}
		event := r.Event
		h.EventUnplanned = h.EventUnplanned ||
			event.Status.Plan == nil && !event.Settled() && event.Spec.Comment == nil && event.Spec.EventType != match.LabelEvent
		for i := range event.Status.Runs {
			run := &event.Status.Runs[i]
			if run.Skipped() {
				continue // no PipelineRun was planned
			}
			if known := h.latest[run.Pipeline]; known == nil || !known.running() {
				h.latest[run.Pipeline] = &latestRun{event: event, run: run, name: run.Pipeline}
			}
		}
	}
	return h
}

// WhySkipped returns why a pipeline is not started again. It returns "" if it is started: its
// latest run has failed or was cancelled, refused or deleted, or there is none.
func (h *History) WhySkipped(pipeline string) string {
	latest := h.latest[pipeline]
	switch {
	case latest == nil && h.EventUnplanned:
		return "the event of the commit itself starts it as soon as it is planned"
	case latest == nil, latest.run.Refused != nil:
		return ""
	case latest.running():
		return fmt.Sprintf("its latest run on this commit, %s, is not finished", latest.run.Name)
	case !latest.failed():
		return fmt.Sprintf("its latest run on this commit, %s, succeeded", latest.run.Name)
	}
	return ""
}

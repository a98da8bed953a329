// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// ordinaryWork is how much CPU time is used for rendering without a pause: as much as 200
	// PipelineRuns of 500 values each.
	ordinaryWork = 200 * time.Millisecond
	// maxWork is the maximum CPU time for rendering an event.
	maxWork = 2 * time.Second
)

// work is the CPU time that was used for rendering an event, and for checking what was rendered.
type work struct {
	done time.Duration
	// postponed is why the rest is done later.
	postponed error
}

// pauseForWork is a resolve.Pace.
func (d *draft) pauseForWork(ctx context.Context, more time.Duration) error {
	d.work.done += more
	if err := d.work.tooMuch(); err != nil {
		return err
	}
	if d.Pause == nil || d.work.done <= ordinaryWork {
		return nil
	}
	d.work.postponed = d.Pause(ctx, more)
	return d.work.postponed
}

// tooMuch returns an Invalid fault if no more may be rendered for the event.
func (w *work) tooMuch() error {
	if w.done <= maxWork {
		return nil
	}
	return fault.Invalidf(
		reasonTooMuchWork,
		"the PipelineRuns that this event would start hold too many values with their tasks inlined: this one and those after it are not started. "+
			"Let fewer pipelines start for one event, use fewer steps, or refer to Tasks with a resolver",
	)
}

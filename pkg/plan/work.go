// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// ordinaryWork is what is rendered for an event without a rest. 200 PipelineRuns of 500 values
	// each take as much.
	ordinaryWork = 200 * time.Millisecond
	// maxWork is the most that is rendered for an event.
	maxWork = 2 * time.Second
)

// work is what has been rendered for an event.
type work struct {
	done time.Duration
	// put is why the rest of it is put off.
	put error
}

// rest is a resolve.Pace.
func (d *draft) rest(ctx context.Context, more time.Duration) error {
	d.work.done += more
	if err := d.work.tooMuch(); err != nil {
		return err
	}
	if d.Rest == nil || d.work.done <= ordinaryWork {
		return nil
	}
	d.work.put = d.Rest(ctx, more)
	return d.work.put
}

// tooMuch returns fault.Invalid when no more is rendered for the event.
func (w *work) tooMuch() error {
	if w.done <= maxWork {
		return nil
	}
	return fault.Invalidf(
		"TooMuchWork",
		"the PipelineRuns that this event would start hold too many values with their tasks inlined: this one and those after it are not started. "+
			"Let fewer pipelines start for one event, use fewer steps, or refer to Tasks with a resolver",
	)
}

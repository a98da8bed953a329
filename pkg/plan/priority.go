// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
)

// priority is the result of settings.queue_priority, and the text for decisions. The value is nil
// until it is evaluated.
type priority struct {
	value *int32
	says  string
}

// priorityPatience is how long an event waits for what its priority depends on: a slow Git service
// must not keep a run out of the queue.
const priorityPatience = 10 * time.Second

// prioritize evaluates settings.queue_priority when the first run of an event is decided, if runs
// may have to wait. It returns the text for the decision, "" for none. Any error gives 0: a run
// never waits for its priority, and it is not the pipeline author's mistake.
func (d *draft) prioritize(ctx context.Context) string {
	settings := d.Repository.Spec.Settings
	if d.priority.value != nil || settings == nil || settings.QueuePriority == "" ||
		d.Repository.Spec.Concurrency(nil) == 0 ||
		d.started() {
		return d.priority.says
	}
	value, note, err := d.evaluatePriority(ctx, settings.QueuePriority)
	if err != nil {
		note = fault.Of(err).Message + ": it counts as 0"
	}
	if d.priority.value = &value; note != "" {
		d.priority.says = fmt.Sprintf("; settings.queue_priority: %s", note)
	}
	return d.priority.says
}

// started reports whether an earlier attempt has decided a run of the event. If it stored no
// priority, there was no queue, and the run keeps its place: the event has priority 0.
func (d *draft) started() bool {
	return d.Earlier != nil &&
		slices.ContainsFunc(d.Earlier.Runs, func(run Run) bool { return run.Refused == nil && !run.Unresolved })
}

// evaluatePriority evaluates with a budget of its own, which the expressions of .tekton by
// untrusted users cannot exhaust. The params have the Repository's values, whatever a comment sets:
// a user who may start a run must not decide how urgent it is.
func (d *draft) evaluatePriority(ctx context.Context, text string) (value int32, note string, err error) {
	own, err := d.factsOf(d.head, params(d.Repository))
	if err != nil {
		return 0, "", err
	}
	own.share(d.facts)
	for question, failed := range d.facts.asked {
		if failed != nil { // nothing is read twice in one attempt
			own.asked[question] = failed
		}
	}
	ctx, cancel := context.WithTimeout(ctx, priorityPatience)
	defer cancel()
	err = own.withFacts(ctx, func() (err error) {
		value, note, err = match.Priority(own.event, text)
		return err
	})
	d.facts.share(own)
	return value, note, err
}

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

// priority is what settings.queue_priority gave, and what decisions say of it. The value is nil as
// long as it is not evaluated.
type priority struct {
	value *int32
	says  string
}

// priorityPatience is how long an event waits for what its priority depends on: a Git service that
// is slow must not keep a run from its line.
const priorityPatience = 10 * time.Second

// prioritize evaluates settings.queue_priority when the first run of an event is decided, where
// runs may have to wait. It returns what the decision says of it, "" if there is nothing to say.
// Whatever goes wrong is 0: a run does not wait for its place among those that wait, and what its
// author has written has no part in it.
func (d *draft) prioritize(ctx context.Context) string {
	settings := d.Repository.Spec.Settings
	if d.priority.value != nil || settings == nil || settings.QueuePriority == "" ||
		d.Repository.Spec.Concurrency(nil) == 0 ||
		d.started() {
		return d.priority.says
	}
	value, told, err := d.evaluatePriority(ctx, settings.QueuePriority)
	if err != nil {
		told = fault.Of(err).Message + ": it counts as 0"
	}
	if d.priority.value = &value; told != "" {
		d.priority.says = fmt.Sprintf("; settings.queue_priority: %s", told)
	}
	return d.priority.says
}

// started reports whether an attempt before this one has decided a run of the event. If it stored
// no priority there was no line, and the run keeps its place: the event has 0.
func (d *draft) started() bool {
	return d.Earlier != nil &&
		slices.ContainsFunc(d.Earlier.Runs, func(run Run) bool { return run.Refused == nil && !run.Unresolved })
}

// evaluatePriority evaluates with a budget of its own: the expressions of .tekton, which strangers
// may have written, cannot use it up. The params have the values that the Repository gives them,
// whatever a comment says: who may start a run must not say how urgent it is.
func (d *draft) evaluatePriority(ctx context.Context, text string) (value int32, told string, err error) {
	own, err := d.factsOf(d.head, params(d.Repository))
	if err != nil {
		return 0, "", err
	}
	own.share(d.facts)
	for question, failed := range d.facts.asked {
		if failed != nil { // nothing is asked twice in one attempt
			own.asked[question] = failed
		}
	}
	ctx, cancel := context.WithTimeout(ctx, priorityPatience)
	defer cancel()
	err = own.withFacts(ctx, func() (err error) {
		value, told, err = match.Priority(own.event, text)
		return err
	})
	d.facts.share(own)
	return value, told, err
}

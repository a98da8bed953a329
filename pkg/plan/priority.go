// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/match"
	"github.com/plumbline-ci/plumbline/pkg/template"
)

// priority is what settings.queue_priority gave, and what decisions say of it. The value is nil as long as it is not evaluated.
type priority struct {
	value *int32
	says  string
}

// prioritize evaluates settings.queue_priority when the first run of an event is decided, where runs may have to wait. It returns what the
// decision says of it, "" if there is nothing to say. Whatever goes wrong is 0: a run does not wait for its place among those that wait, and
// what its author has written has no part in it.
func (d *draft) prioritize(ctx context.Context) string {
	settings := d.Repository.Spec.Settings
	if d.priority.value != nil || settings == nil || settings.QueuePriority == "" || d.Repository.Spec.Concurrency(nil) == 0 {
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

// evaluatePriority evaluates with a budget of its own: the expressions of .tekton, which strangers may have written, cannot use it up.
func (d *draft) evaluatePriority(ctx context.Context, text string) (value int32, told string, err error) {
	own, err := d.newFacts(d.head)
	if err != nil {
		return 0, "", err
	}
	known := &d.facts.event
	own.event.Body, own.event.Changed = known.Body, known.Changed
	own.scope.Learn(template.Facts{Body: known.Body})
	if known.Changed != nil {
		own.scope.Learn(template.Facts{Files: known.Changed.Files()})
	}
	for question, failed := range d.facts.asked {
		if failed != nil { // nothing is asked twice in one attempt
			own.asked[question] = failed
		}
	}
	err = own.learning(ctx, func() (err error) {
		value, told, err = match.Priority(own.event, text)
		return err
	})
	return value, told, err
}

// SPDX-License-Identifier: Apache-2.0

package match

import (
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
)

// OfNamed returns the annotations that decide about a pipeline that a user with the permission
// requests by name.
func OfNamed(annotations map[string]string) map[string]string {
	return only(annotations, pipelinesascode.TargetNamespace)
}

// SelectNamed reports whether the event starts a pipeline that a user requests by name. It does if
// on-event lists the event's trigger, or if the expression is true. It also does if the pipeline
// has neither annotation and is started by hand only. With the annotations of OfNamed, only the
// namespace counts. The contract is that of Select.
func SelectNamed(ev Event, p Pipeline) (Selection, error) {
	if d := elsewhere(ev, p.Annotations); d.Reason != "" {
		return d, nil
	}
	events, found, err := lookup(p.Annotations, pipelinesascode.OnEvent)
	_, expression := p.Annotations[pipelinesascode.OnCELExpression]
	switch {
	case err == nil && slices.Contains(events, string(ev.Trigger)), !found && !expression:
		return Selection{Selected: true, Reason: selected("a comment asks for it by its name")}, nil
	case err == nil && !expression:
		return declined(
			"a comment asks for it by its name, and on-event %s does not include %s: with definitions of the default branch that starts it only if the Repository has "+
				"settings.test_any: true%s",
			show(events),
			ev.Trigger,
			eventHint(p.Annotations, events),
		), nil
	}
	return Select(ev, p)
}

// SelectIncoming reports whether a request to /incoming starts the pipeline that it names: with the
// annotations of OfNamed, it does in the Repository's own namespace.
func SelectIncoming(ev Event, p Pipeline) (Selection, error) {
	if d := elsewhere(ev, p.Annotations); d.Reason != "" {
		return d, nil
	}
	return Selection{Selected: true, Reason: selected("a request to /incoming asks for it by its name")}, nil
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// incompleteFiles is added wherever a decision was made from a list that the Git service had
// truncated.
const incompleteFiles = "the Git service did not list all changed files"

// selectOne matches a definition against the event. One that an earlier attempt selected stays
// selected; only what it refers to is open.
func (d *draft) selectOne(ctx context.Context, c *candidate) {
	if run := d.runs.named(c.run); run != nil {
		c.selection = match.Selection{
			Selected:   true,
			Reason:     cmp.Or(c.decision.Selected, match.Selected),
			Incomplete: run.Note != "",
		}
		return
	}
	if d.selectForRerun(c) {
		return
	}
	if c.err = d.checkNamed(c.definition); c.err != nil {
		return
	}
	if c.err = c.definition.Err; c.err != nil {
		if d.isRemark() { // each comment would report it again; the pull request's own event does
			c.err = fault.Ignoredf(reasonNotSelected, "%s", fault.Of(c.err).Message)
		}
		return
	}
	c.err = d.facts.withFacts(ctx, func() (err error) {
		c.selection, c.unmatched, err = d.matches(c.definition)
		return err
	})
	c.selection.Incomplete = d.facts.truncatedUsed() || c.selection.Incomplete
	c.unmatched = c.unmatched && !c.selection.Incomplete
	if c.selection.Incomplete {
		c.selection.Reason += "; " + incompleteFiles
	}
	c.selection.Reason = d.facts.event.Params.Mask(c.selection.Reason)
	switch {
	case c.err != nil:
	case !c.selection.Selected:
		c.err = fault.Ignoredf(reasonNotSelected, "%s", c.selection.Reason)
	default:
		c.err = d.declineStarted(ctx, c)
	}
}

// counting returns a definition with the annotations that count for the event, and the function
// that decides by them.
func (d *draft) counting(
	definition resolve.Definition,
) (resolve.Definition, func(match.Event, match.Pipeline) (match.Selection, error)) {
	decide := match.Select
	switch {
	case d.isRemark():
		definition.Annotations = match.OfComments(definition.Annotations)
	case d.byIncoming():
		definition.Annotations, decide = ofIncoming(definition)
	case d.namesPipelines() && d.startsAnyName():
		definition.Annotations, decide = match.OfNamed(definition.Annotations), match.SelectNamed
	case d.namesPipelines():
		decide = match.SelectNamed
	}
	return definition, decide
}

// matches reports whether a definition's annotations match the event. unmatched is true if they do
// not and a check has to say so.
func (d *draft) matches(definition resolve.Definition) (s match.Selection, unmatched bool, err error) {
	definition, decide := d.counting(definition)
	annotations, err := d.set.Annotations(definition, d.facts.scope)
	if err != nil {
		return s, false, err
	}
	pipeline := match.Pipeline{Name: definition.Name, Annotations: annotations}
	decision, err := decide(d.facts.event, pipeline)
	if err != nil {
		return s, false, fmt.Errorf("%s: %w", definition.File, d.set.AsWritten(definition, d.facts.scope, err))
	}
	if decision.Needs.Any() {
		return s, false, &template.Unknown{Needs: decision.Needs}
	}
	if decision.Selected && !d.onRequest() && match.QueueDecides(d.facts.event, pipeline) {
		return match.Selection{Reason: "the commit is in the merge queue, whose own event starts it"}, false, nil
	}
	return decision, !decision.Selected && d.showsUnmatched(pipeline), nil
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
)

// A request to POST /incoming starts one pipeline by its name, as a push to its branch would. Its
// sender knows a secret of the Repository, so it needs no other permission.

// setCommit gives a request to /incoming the commit that its plan was started for, and records the
// event as one of that commit: so a re-run finds it.
func (p *planner) setCommit(ctx context.Context) error {
	if p.Earlier != nil {
		p.spec.SHA = p.Earlier.HeadSHA
		return nil
	}
	if p.RecordSubject == nil {
		return nil
	}
	return p.RecordSubject(ctx, p.spec.Subject())
}

// requestedNames returns the names of the pipelines that a command or a request to /incoming names.
func (p *planner) requestedNames() []string {
	switch {
	case p.command != nil:
		return p.command.Names
	case p.byIncoming():
		return []string{p.spec.Incoming.Pipeline}
	}
	return nil
}

// byIncoming reports whether a request to /incoming decides which pipeline starts: its own event,
// or a re-run of one that found no pipelines.
func (p *planner) byIncoming() bool {
	return p.spec.Incoming != nil && (p.rerun == nil || p.rerun.Pipelines == nil)
}

// ofIncoming returns the annotations that decide whether a request to /incoming starts the pipeline
// that it names. As in Pipelines-as-Code, those of a pipeline with a generateName must match; one
// with a name is started whatever they say.
func ofIncoming(
	definition resolve.Definition,
) (map[string]string, func(match.Event, match.Pipeline) (match.Selection, error)) {
	if strings.HasSuffix(definition.Name, "-") {
		return definition.Annotations, match.Select
	}
	return match.OfNamed(definition.Annotations), match.SelectIncoming
}

// endIncoming says why a request to /incoming starts nothing although there is such a pipeline.
func (d *draft) endIncoming(made *Plan) {
	if d.spec.Incoming == nil || d.rerun != nil || made.Reason != noMatch {
		return
	}
	for _, decision := range made.Decisions {
		if decision.Reason != v1alpha1.NotNamed && !decision.Open {
			made.Message = "nothing was started: " + decision.Pipeline + ": " + decision.Reason
		}
	}
}

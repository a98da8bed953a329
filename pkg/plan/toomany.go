// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
)

// tooMany returns an Invalid fault if more pipelines are selected than one event may start, else
// nil. Pipelines that cannot be decided yet do not count yet.
func (d *draft) tooMany(open []*candidate) *fault.Error {
	selected := d.runs.started()
	for _, c := range open {
		if (c.err == nil || fault.Is(c.err, fault.Invalid)) && d.runs.named(c.run) == nil {
			selected++
		}
	}
	if selected <= v1alpha1.MaxRuns {
		return nil
	}
	none := "none of them is started"
	if d.Earlier != nil {
		none = "no more of them are started"
	}
	return fault.Invalidf(
		reasonTooManyPipelines,
		"%d pipelines in %s are for this event, and one event starts at most %d: %s. "+
			"Narrow their annotations, or start several from one pipeline",
		selected,
		Definitions,
		v1alpha1.MaxRuns,
		none,
	)
}

// refuseOpen ends the planning with one check that says why. What was created for the event before
// continues.
func (d *draft) refuseOpen(open []*candidate, why *fault.Error) {
	for _, c := range open {
		message := why.Message
		if f := fault.Of(c.err); f != nil && f.Class == fault.Ignored {
			message = f.Message
		}
		c.decide(message)
		if run := d.runs.named(c.run); run != nil {
			run.Unresolved, run.Refused = false, &v1alpha1.Refusal{Reason: why.Reason, Message: why.Message}
		}
	}
	d.runs.all = append(d.runs.all, d.directoryRefused(why))
}

// directoryRefused returns a run that is never created. Its check shows what is wrong with the
// whole directory.
func (p *planner) directoryRefused(why *fault.Error) Run {
	return Run{
		Pipeline:  Definitions,
		Namespace: p.spec.Repository.Namespace,
		Name:      resources.RunName(p.Event.Name, Definitions, 0, Definitions),
		Refused:   &v1alpha1.Refusal{Reason: why.Reason, Message: why.Message},
	}
}

// WaitingRun returns the name of the run that represents an event's plan while the Git service
// refuses what decides. It is never created: its check shows what is waited for.
func WaitingRun(event string) string {
	return resources.RunName(event, Definitions, 0, "waiting")
}

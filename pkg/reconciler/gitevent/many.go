// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/resources"
	"github.com/plumbline-ci/plumbline/pkg/statuslimit"
)

// tooMany returns fault.Invalid if more pipelines are for the event than one event may start. Those that cannot be decided
// yet do not count yet.
func (w *work) tooMany(candidates []*candidate) error {
	selected := len(w.event.Status.Runs)
	for _, c := range candidates {
		if (c.err == nil || fault.Is(c.err, fault.Invalid)) && w.runOf(c.definition) == nil {
			selected++
		}
	}
	if selected <= statuslimit.MaxRuns {
		return nil
	}
	none := "none of them is started"
	if w.planned() {
		none = "no more of them are started"
	}
	return fault.Invalidf("TooManyPipelines", "%d pipelines in %s are for this event, and one event starts at most %d: %s. "+
		"Narrow their annotations, or start several from one pipeline", selected, definitions, statuslimit.MaxRuns, none)
}

// refuseOpen ends the planning with one check that says why. What was created for the event before goes on.
func (w *work) refuseOpen(ctx context.Context, plan *v1alpha1.Plan, candidates []*candidate, why *fault.Error) error {
	for _, c := range candidates {
		message := why.Message
		if f := fault.Of(c.err); f != nil && f.Class == fault.Ignored {
			message = f.Message
		}
		c.decide(message)
		if run := w.runOf(c.definition); run != nil {
			w.clear(stepCreate + run.Name)
			run.Unresolved, run.Refused = false, &v1alpha1.Refusal{Reason: why.Reason, Message: why.Message}
		}
	}
	plan.Reason, plan.Message = why.Reason, why.Message
	w.event.Status.Runs = append(w.event.Status.Runs, w.wholeRefused(why))
	return w.accept(ctx, v1alpha1.DispositionRuns, plan)
}

// wholeRefused is a run that is never created: its check tells what is wrong with the directory as a whole.
func (w *work) wholeRefused(why *fault.Error) v1alpha1.Run {
	return v1alpha1.Run{
		Pipeline: definitions, Namespace: w.event.Spec.Repository.Namespace, Name: resources.RunName(w.event.Name, definitions, 0, definitions),
		Refused: &v1alpha1.Refusal{Reason: why.Reason, Message: why.Message},
	}
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/match"
	"github.com/plumbline-ci/plumbline/pkg/resolve"
)

// draft is what the pipelines of an event are made from.
type draft struct {
	head  git.Head
	set   *resolve.Set
	facts *facts
}

// candidate is a definition that is not decided yet.
type candidate struct {
	definition resolve.Definition
	// decision is its entry of the plan.
	decision *v1alpha1.Decision
	// selection is what its annotations say.
	selection match.Decision
	// err says why it is not selected (Ignored), what its author has to mend (Invalid), or what it waits for (the rest).
	err error
}

// choose decides about every definition that is open, renders the selected ones and accepts the result. What has to
// wait stays open and keeps none of the others waiting (B3, B4). Nothing is written as long as there is nothing to
// create: an event that turns out to be for no pipeline leaves no trace.
func (w *work) choose(ctx context.Context, plan *v1alpha1.Plan, d draft) error {
	candidates := candidates(plan, d.set.Definitions())
	for _, c := range candidates {
		w.selects(ctx, c, d)
	}
	w.leaveToPull(ctx, candidates, d.facts)
	if err := w.tooMany(candidates); err != nil {
		return w.refuseOpen(ctx, plan, candidates, fault.Of(err))
	}
	made, err := w.prepareAll(ctx, candidates, d)
	if err != nil {
		return err
	}
	wait := waiting(candidates)
	runs := w.event.Status.Runs
	if wait != nil && (len(runs) == 0 || w.planned() && w.unchanged(plan)) {
		return wait
	}
	if err := w.keep(ctx, plan, made.manifests, d.facts.scope.Secrets()); err != nil {
		w.event.Status.Runs = w.stored.DeepCopy().Runs
		return err
	}
	if err := w.accept(ctx, disposition(plan, runs), plan); err != nil {
		return err
	}
	return wait
}

// prepareAll prepares the candidates. What they make is refused if it is more than can be kept.
func (w *work) prepareAll(ctx context.Context, candidates []*candidate, d draft) (*planned, error) {
	made := &planned{}
	for _, c := range candidates {
		manifest := w.prepare(ctx, c, d)
		if manifest == nil {
			continue
		}
		if err := made.add(manifest, w.runOf(c.definition).Pipeline); err != nil {
			return nil, err
		}
	}
	if made.tooLarge() {
		made.refuse(w, candidates)
	}
	return made, nil
}

// candidates returns the open ones among the definitions, in their order, each with its entry of the plan. The commit
// is pinned, so that they are the same definitions at each attempt.
func candidates(plan *v1alpha1.Plan, definitions []resolve.Definition) []*candidate {
	place := func(d v1alpha1.Decision) string { return fmt.Sprintf("%s#%d", d.File, d.Document) }
	decided := map[string]v1alpha1.Decision{}
	for _, d := range plan.Decisions {
		decided[place(d)] = d
	}
	decisions := make([]v1alpha1.Decision, len(definitions))
	var open []*candidate
	for i, definition := range definitions {
		fresh := v1alpha1.Decision{File: definition.File, Document: definition.Document, Pipeline: definition.Name, Open: true}
		known, found := decided[place(fresh)]
		decisions[i] = fresh
		if found {
			decisions[i] = known
		}
		if decisions[i].Open {
			open = append(open, &candidate{definition: definition, decision: &decisions[i]})
		}
	}
	plan.Decisions = decisions
	return open
}

// waiting returns what the candidates wait for: what is tried again soonest speaks for the others, whose times count as
// well; nil when none waits.
func waiting(candidates []*candidate) error {
	var waits []error
	for _, c := range candidates {
		if c.decision.Open {
			waits = append(waits, c.err)
		}
	}
	if len(waits) == 0 {
		return nil
	}
	soonest := slices.MinFunc(waits, func(a, b error) int {
		return cmp.Or(cmp.Compare(fault.Of(a).Class, fault.Of(b).Class), cmp.Compare(fault.Of(a).RetryAfter, fault.Of(b).RetryAfter))
	})
	return fault.Among(soonest, waits...)
}

// unchanged tells whether the plan says what is stored.
func (w *work) unchanged(plan *v1alpha1.Plan) bool {
	return equality.Semantic.DeepEqual(plan, w.stored.Plan) && equality.Semantic.DeepEqual(w.event.Status.Runs, w.stored.Runs)
}

func disposition(plan *v1alpha1.Plan, runs []v1alpha1.Run) v1alpha1.Disposition {
	switch {
	case len(runs) > 0:
		plan.Reason, plan.Message = "Selected", fmt.Sprintf("%d of %d pipelines in %s are for this event", len(runs), len(plan.Decisions), definitions)
		return v1alpha1.DispositionRuns
	case len(plan.Decisions) == 0:
		plan.Reason, plan.Message = "NoPipelines", fmt.Sprintf("the commit has no PipelineRun in a .yaml or .yml file of %s", definitions)
	default:
		plan.Reason, plan.Message = "NoMatch", fmt.Sprintf("none of the %d pipelines in %s is for this event", len(plan.Decisions), definitions)
	}
	return v1alpha1.DispositionIgnored
}

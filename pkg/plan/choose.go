// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/plan/rerun"
)

// draft is the work on the pipelines of one event, and its runs so far.
type draft struct {
	*planner
	head       git.Head
	set        *resolve.Set
	facts      *facts
	references resolve.References // nil when references are not allowed
	runs       runs
	work       work
	// named has the names of the pipelines that a command names, as in the definitions; nil for
	// everything else.
	named  map[string]bool
	retest rerun.Retest
}

// candidate is a definition that is not decided yet.
type candidate struct {
	definition resolve.Definition
	// run is the name of its PipelineRun.
	run string
	// decision is its entry in the plan.
	decision *v1alpha1.Decision
	// selection is the result of its annotations.
	selection match.Selection
	// err says why it is not selected (Ignored), what its author has to fix (Invalid), or what it
	// waits for (every other class).
	err error
	// unmatched is true if it gets a check although it is not selected.
	unmatched bool
}

// choose decides about every open definition and renders the selected ones. One that has to wait
// stays open, and the others do not wait for it (B3, B4).
func (d *draft) choose(ctx context.Context, made *Plan) error {
	decisions, open := d.candidates()
	if end := d.nameUnknown(decisions); end != "" {
		made.Disposition, made.Reason = v1alpha1.DispositionIgnored, reasonUnknownName
		made.Message, made.Decisions = end, decisions
		d.Approval, d.EndsPending = nil, false // as for every command that cannot be carried out
		return nil
	}
	for _, c := range open {
		d.selectOne(ctx, c)
	}
	d.declinePairs(ctx, open)
	if why := d.tooMany(open); why != nil {
		d.refuseOpen(open, why)
		made.Disposition, made.Reason, made.Message = v1alpha1.DispositionRuns, why.Reason, why.Message
		made.Decisions, made.Runs = decisions, d.runs.all
		return nil
	}
	if err := d.prepareAll(ctx, open); err != nil {
		return err
	}
	made.Disposition, made.Reason, made.Message = outcome(d.runs.started(), len(decisions))
	if d.runs.started() == 0 && d.retest.Skipped > 0 {
		made.Reason, made.Message = "NothingToRetest", fmt.Sprintf(
			"none of the %d pipelines for this event has a latest run on this commit that ended without success: "+
				"a command that names one starts it anyway",
			d.retest.Skipped,
		)
	}
	made.Decisions, made.Runs, made.Secrets, made.Wait = decisions, d.runs.all, d.facts.scope.Secrets(), waiting(open)
	d.endIncoming(made)
	return nil
}

// prepareAll prepares the candidates. If the results are too large to be stored, it refuses them
// all.
func (d *draft) prepareAll(ctx context.Context, open []*candidate) error {
	var all size
	if d.Earlier != nil {
		all.earlier = d.Earlier.Bytes
	}
	for _, c := range open {
		run := d.prepare(ctx, c)
		if d.work.postponed != nil {
			return d.work.postponed
		}
		if run == nil || run.Manifest == nil {
			continue
		}
		all.add(run)
		if err := d.reserveMemory(min(all.total, MaxBytes)); err != nil {
			return err
		}
		if all.tooLarge() { // only the sizes are needed
			d.forgetManifests()
		}
	}
	if all.tooLarge() {
		d.refuseLarge(&all, open)
		return nil
	}
	d.addUnmatched(ctx, open)
	return nil
}

// candidates returns a decision for each definition, in order, and the open ones. The commit is
// fixed, so the definitions are the same at each attempt.
func (d *draft) candidates() ([]v1alpha1.Decision, []*candidate) {
	place := func(d v1alpha1.Decision) string { return fmt.Sprintf("%s#%d", d.File, d.Document) }
	decided := map[string]v1alpha1.Decision{}
	if d.Earlier != nil {
		for _, decision := range d.Earlier.Decisions {
			decided[place(decision)] = decision
		}
	}
	definitions := d.set.Definitions()
	decisions := make([]v1alpha1.Decision, len(definitions))
	var open []*candidate
	for i, definition := range definitions {
		fresh := v1alpha1.Decision{
			File:     definition.File,
			Document: definition.Document,
			Pipeline: definition.Name,
			Open:     true,
		}
		known, found := decided[place(fresh)]
		decisions[i] = fresh
		if found {
			decisions[i] = known
		}
		if decisions[i].Open {
			open = append(open,
				&candidate{definition: definition, run: runName(d.Event.Name, definition), decision: &decisions[i]})
		}
	}
	return decisions, open
}

// waiting returns what the candidates wait for, nil if none waits. The one that is retried first
// determines the message; the times of the others count too.
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
		return cmp.Or(cmp.Compare(fault.Of(a).Class, fault.Of(b).Class),
			cmp.Compare(fault.Of(a).RetryAfter, fault.Of(b).RetryAfter))
	})
	return fault.Among(soonest, waits...)
}

// noMatch is the reason of an event that no pipeline is for.
const noMatch = "NoMatch"

// outcome returns the disposition of an event with this many runs and definitions.
func outcome(runs, definitions int) (disposition v1alpha1.Disposition, reason, message string) {
	switch {
	case runs > 0:
		return v1alpha1.DispositionRuns, "Selected", fmt.Sprintf("%d of %d pipelines in %s are for this event",
			runs, definitions, Definitions)
	case definitions == 0:
		return v1alpha1.DispositionIgnored, "NoPipelines", fmt.Sprintf(
			"the commit has no PipelineRun in a .yaml or .yml file of %s", Definitions,
		)
	}
	return v1alpha1.DispositionIgnored, noMatch, fmt.Sprintf("none of the %d pipelines in %s is for this event",
		definitions, Definitions)
}

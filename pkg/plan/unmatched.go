// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"slices"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// showsUnmatched reports whether a pipeline that the event does not start gets a check that says so
// (settings.unmatched). See docs/adr/0058.
func (d *draft) showsUnmatched(p match.Pipeline) bool {
	// A pull request that is opened later may change more, and would have this check.
	ofPulls := d.spec.PullRequest == nil && d.spec.Trigger == v1alpha1.TriggerPush && match.OfPulls(p)
	if d.someOnly() || ofPulls {
		return false
	}
	switch d.Repository.Spec.Settings.ChecksOfUnmatched() {
	case pacv1alpha1.UnmatchedPaths:
		return match.OnlyPaths(d.facts.event, p)
	case pacv1alpha1.UnmatchedAll: // a label says nothing about pipelines that do not read labels
		return d.spec.EventType != match.LabelEvent && match.Automatic(d.facts.event, p)
	}
	return false
}

// someOnly reports whether the event is about some of the pipelines. A command about all of them
// may be the only event that plans them, such as an approval.
func (d *draft) someOnly() bool {
	all := d.command != nil && d.spec.PullRequest != nil && !d.namesPipelines()
	return d.rerun != nil || d.spec.Incoming != nil || d.spec.Comment != nil && !all
}

// addUnmatched adds the runs whose checks say that a pipeline does not start. It adds them after
// the runs that start, which therefore keep their names.
func (d *draft) addUnmatched(ctx context.Context, open []*candidate) {
	undecided := 0
	for _, c := range open {
		if c.decision.Open {
			undecided++ // it may need a run
		}
	}
	open = slices.DeleteFunc(slices.Clone(open), func(c *candidate) bool { return !c.unmatched })
	if len(open) == 0 || d.leavesChecks(ctx) {
		return
	}
	for _, c := range open {
		name := d.knownName(ctx, c.definition.Name)
		taken := slices.ContainsFunc(d.runs.all, func(run Run) bool { return run.Pipeline == name })
		if len(d.runs.all)+undecided >= v1alpha1.MaxRuns || taken || strings.Contains(name, "{{") {
			continue
		}
		d.runs.all = append(d.runs.all, Run{
			Pipeline: name, Namespace: d.spec.Repository.Namespace, Name: c.run,
			Refused: &v1alpha1.Refusal{Reason: v1alpha1.ReasonUnmatched, Message: c.selection.Reason},
		})
	}
}

// leavesChecks reports whether a push leaves such checks to the pull request of its branch, or to
// the merge group: the two change different files, and only those of the other event decide about
// merging. Without an answer of the Git service, the push leaves them, too.
func (d *draft) leavesChecks(ctx context.Context) bool {
	if !pushesBranch(d.spec) {
		return false
	}
	_, queued := match.AsMergeGroup(d.facts.event) // the merge group's own event reports
	return queued || d.facts.learn(ctx, template.Needs{Pulls: true}) != nil || len(d.pullsOfBranch()) > 0
}

// knownName returns the name of a definition's check, as far as its placeholders are known now. A
// name that is too long is returned as it is written.
func (d *draft) knownName(ctx context.Context, written string) string {
	_ = d.facts.withFacts(ctx, func() error { _, err := d.facts.scope.Text(written); return err })
	known := d.facts.scope.Known(written)
	_ = d.facts.truncatedUsed() // what the name used says nothing about the next pipeline
	if v1alpha1.Length(known) > maxPipelineName {
		return written
	}
	return known
}

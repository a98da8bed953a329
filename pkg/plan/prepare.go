// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/plan/annotations"
)

// maxPipelineName is the API server's limit for a name, in bytes as the status stores it.
const maxPipelineName = 253

// prepare decides about a candidate and, if it is selected, makes its run. It returns the run, nil
// if there is none or not yet.
func (d *draft) prepare(ctx context.Context, c *candidate) *Run {
	run := Run{Pipeline: c.definition.Name, Namespace: d.spec.Repository.Namespace, Name: c.run}
	if c.selection.Incomplete {
		run.Note = "Path filters may have missed something: " + incompleteFiles + "."
	}
	selected := c.err == nil
	var made *pipelinev1.PipelineRun
	if selected {
		made, c.err = d.render(ctx, &run, c)
	}
	if d.facts.truncatedUsed() && run.Note == "" {
		run.Note = "Variables that list the changed files may miss some: " + incompleteFiles + "."
	}
	f := fault.Of(c.err)
	switch {
	case f == nil:
		c.decide(c.selection.Reason + d.prioritize(ctx))
		run.RunPolicy = annotations.Read(
			made.Annotations,
			annotations.Options{Config: d.Config, PullRequest: d.spec.PullRequest != nil,
				Quote: func(written string) string { return shown(d.facts.event.Params.Mask(written)) }},
		)
		for _, problem := range run.Problems() {
			c.decision.Reason += "; " + problem.Says
		}
		dropped := annotations.Dropped(c.definition, d.set.UnknownIn(c.definition))
		idle := annotations.Idle(c.definition, d.facts.scope.Misspelt(string(run.Manifest)))
		notes := []string{run.Note, d.approvalNote(), d.tokenNote(made), dropped, idle}
		run.Note = strings.Join(strings.Fields(strings.Join(notes, " ")), " ")
	case f.Class == fault.Ignored:
		c.decide(f.Message)
		return nil
	case f.Class == fault.Invalid:
		c.decide(f.Message)
		run.Refused = &v1alpha1.Refusal{Reason: f.Reason, Message: f.Message}
		d.nameRefused(ctx, &run, c)
	default:
		d.postpone(c, &run, selected, f)
		return nil
	}
	d.runs.put(run)
	return d.runs.named(run.Name)
}

// nameRefused gives the check of a refused pipeline the name that its run would have had, so that a
// required check with that name shows the refusal. A placeholder whose value cannot be read now
// stays: the refusal does not wait for it.
func (d *draft) nameRefused(ctx context.Context, run *Run, c *candidate) {
	known := d.knownName(ctx, run.Pipeline)
	if known == run.Pipeline {
		return
	}
	run.Pipeline = known
	_ = d.runs.distinct(run, c.definition.File) // the file's name will do, and the pipeline is refused already
}

func (c *candidate) decide(reason string) {
	c.decision.Open, c.decision.Reason, c.decision.Selected = false, reason, ""
}

// postpone leaves a candidate open. If it is selected, it gets a run whose check shows what it
// waits for, unless not even its name is known.
func (d *draft) postpone(c *candidate, run *Run, selected bool, f *fault.Error) {
	// The first message of a transient fault stays: a retry must not change the plan.
	if c.decision.Reason == "" || f.Class != fault.Transient {
		c.decision.Reason = "waiting: " + f.Message
	}
	if selected && !strings.Contains(run.Pipeline, "{{") {
		run.Unresolved, run.Wait, c.decision.Selected = true, c.err, c.selection.Reason
		d.runs.put(*run)
	}
}

// render makes the PipelineRun of a selected definition and completes its run.
func (d *draft) render(ctx context.Context, run *Run, c *candidate) (made *pipelinev1.PipelineRun, err error) {
	if err := d.work.tooMuch(); err != nil {
		return nil, err
	}
	scope := d.facts.scope
	if d.hasToken() {
		run.Secret = resources.SecretName(run.Name)
		scope = scope.With(gitAuthVariable, run.Secret)
	}
	var rendered *pipelinev1.PipelineRun
	err = d.facts.withFacts(ctx, func() (err error) {
		rendered, err = d.set.Render(ctx, c.definition, scope, d.references)
		return err
	})
	if err != nil {
		return nil, err
	}
	pace := func(more time.Duration) error { return d.pauseForWork(ctx, more) }
	if err := d.Config.CheckRun(rendered, c.definition.File, d.Repository, pace); err != nil {
		return nil, scope.Conceal(err)
	}
	run.Pipeline = resolve.OriginalName(rendered) // the definition's name may have placeholders
	if v1alpha1.Length(run.Pipeline) > maxPipelineName {
		name := run.Pipeline
		run.Pipeline = c.definition.Name
		return nil, fault.Invalidf(reasonBadName, "%s: with the variables replaced metadata.name is longer than %d bytes: %s",
			c.definition.File, maxPipelineName, name)
	}
	if err := d.runs.distinct(run, c.definition.File); err != nil {
		return nil, err
	}
	_ = d.facts.withFacts(ctx, func() (err error) { // no run waits for a value that only a link shows
		run.LinkParams, err = scope.Public(d.Config.Console.Params())
		return err
	})
	made = d.pipelineRun(run, c, rendered)
	if d.Approval != nil {
		resources.Confine(made, d.serviceAccount())
	}
	if run.Manifest, err = json.Marshal(made); err != nil {
		return nil, fmt.Errorf("encoding PipelineRun %s: %w", run.Name, err)
	}
	return made, nil
}

// pipelineRun returns the PipelineRun of a rendered definition.
func (d *draft) pipelineRun(run *Run, c *candidate, rendered *pipelinev1.PipelineRun) *pipelinev1.PipelineRun {
	target, source := match.Branches(d.facts.event, rendered.Annotations)
	event := &v1alpha1.GitEvent{Spec: *d.spec}
	event.Namespace, event.Name, event.Annotations = d.Event.Namespace, d.Event.Name, d.Event.Annotations
	return resources.MakePipelineRun(resources.RunInput{
		Event: event, Head: d.head, Rendered: rendered, Definition: c.definition,
		TargetBranch: target, SourceBranch: source,
		Name: run.Name, Namespace: run.Namespace, Secret: run.Secret,
		LogURL: d.Config.Console.Links(v1alpha1.Run{
			Namespace: run.Namespace, Name: run.Name, LinkParams: run.LinkParams,
		}).Run,
		Version: d.Version,
	})
}

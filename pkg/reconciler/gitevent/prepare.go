// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/match"
	"github.com/plumbline-ci/plumbline/pkg/resolve"
	"github.com/plumbline-ci/plumbline/pkg/resources"
	"github.com/plumbline-ci/plumbline/pkg/statuslimit"
)

// maxPipelineName is the API server's limit of a name. It is counted as the status keeps it.
const maxPipelineName = 253

// prepare turns a candidate into its decision and, if it is selected, its run. It returns the PipelineRun to create,
// nil when there is none or not yet.
func (w *work) prepare(ctx context.Context, c *candidate, d draft) *pipelinev1.PipelineRun {
	run := v1alpha1.Run{
		Pipeline:  c.definition.Name,
		Namespace: w.event.Spec.Repository.Namespace,
		Name:      w.runName(c.definition),
	}
	if c.selection.Incomplete {
		run.Note = "Path filters may have missed something: " + incompleteFiles + "."
	}
	selected := c.err == nil
	var manifest *pipelinev1.PipelineRun
	if selected {
		manifest, c.err = w.render(ctx, &run, c, d)
	}
	if d.facts.cut() && run.Note == "" {
		run.Note = "Variables that list the changed files may miss some: " + incompleteFiles + "."
	}
	f := fault.Of(c.err)
	switch {
	case f == nil:
		c.decide(c.selection.Reason)
	case f.Class == fault.Ignored:
		c.decide(f.Message)
		return nil
	case f.Class == fault.Invalid:
		c.decide(f.Message)
		run.Refused = &v1alpha1.Refusal{Reason: f.Reason, Message: f.Message}
		w.nameRefused(ctx, &run, c, d)
	default:
		w.postpone(c, &run, selected, f)
		return nil
	}
	w.clear(stepCreate + run.Name)
	w.plans(run)
	return manifest
}

// nameRefused names the check of a refused pipeline as its run would have been named, so that a required check of that name
// shows the refusal. A placeholder whose value cannot be learnt now stays: the refusal does not wait for it.
func (w *work) nameRefused(ctx context.Context, run *v1alpha1.Run, c *candidate, d draft) {
	scope := d.facts.scope
	_ = w.learning(ctx, d.facts, func() error { _, err := scope.Text(run.Pipeline); return err })
	known := scope.Known(run.Pipeline)
	_ = d.facts.cut() // what the name read says nothing about the next pipeline
	if known == run.Pipeline || statuslimit.Length(known) > maxPipelineName {
		return
	}
	run.Pipeline = known
	_ = w.distinct(run, c.definition.File) // the file's name is as good, and it is refused already
}

func (c *candidate) decide(reason string) {
	c.decision.Open, c.decision.Reason, c.decision.Selected = false, reason, ""
}

// postpone leaves a candidate open. One that is selected already gets its run, so that its author sees a check that says
// what it waits for, unless not even its name is known.
func (w *work) postpone(c *candidate, run *v1alpha1.Run, selected bool, f *fault.Error) {
	if c.decision.Reason == "" || f.Class != fault.Transient { // of transient faults the first words stand: no retry rewrites the plan
		c.decision.Reason = "waiting: " + f.Message
	}
	if selected && !strings.Contains(run.Pipeline, "{{") {
		run.Unresolved, c.decision.Selected = true, c.selection.Reason
		c.err = w.settle(stepCreate+run.Name, c.err)
		w.plans(*run)
	}
}

// plans adds a run, or completes the one that was unresolved. That may have been called without the dash of its generateName,
// by the release before: its check keeps the name, because a GitLab would show another one, and the first would stay pending.
func (w *work) plans(run v1alpha1.Run) {
	for i := range w.event.Status.Runs {
		if before := &w.event.Status.Runs[i]; before.Name == run.Name {
			if before.Pipeline+"-" == run.Pipeline {
				run.Pipeline = before.Pipeline
			}
			*before = run
			return
		}
	}
	w.event.Status.Runs = append(w.event.Status.Runs, run)
}

// runName is made of the name without the dash of a generateName: the names of PipelineRuns that exist must stay.
func (w *work) runName(definition resolve.Definition) string {
	return resources.RunName(w.event.Name, definition.File, definition.Document, strings.TrimSuffix(definition.Name, "-"))
}

// runOf returns the run that a definition was planned as.
func (w *work) runOf(definition resolve.Definition) *v1alpha1.Run {
	name := w.runName(definition)
	for i := range w.event.Status.Runs {
		if w.event.Status.Runs[i].Name == name {
			return &w.event.Status.Runs[i]
		}
	}
	return nil
}

// render makes the PipelineRun of a selected definition and completes its run.
func (w *work) render(ctx context.Context, run *v1alpha1.Run, c *candidate, d draft) (*pipelinev1.PipelineRun, error) {
	scope := d.facts.scope
	if w.config.SecretAutoCreate {
		run.Secret = resources.SecretName(run.Name)
		scope = scope.With("git_auth_secret", run.Secret)
	}
	var rendered *pipelinev1.PipelineRun
	err := w.learning(ctx, d.facts, func() (err error) {
		rendered, err = d.set.Render(ctx, c.definition, scope, w.references)
		return err
	})
	if err != nil {
		return nil, err
	}
	run.Pipeline = resolve.OriginalName(rendered) // the definition's name may hold placeholders
	if statuslimit.Length(run.Pipeline) > maxPipelineName {
		name := run.Pipeline
		run.Pipeline = c.definition.Name
		return nil, fault.Invalidf("BadName", "%s: with the variables replaced metadata.name is longer than %d bytes: %s", c.definition.File, maxPipelineName, name)
	}
	if err := w.distinct(run, c.definition.File); err != nil {
		return nil, err
	}
	target, source := match.Branches(d.facts.event, rendered.Annotations)
	return resources.MakePipelineRun(resources.RunInput{
		Event: w.event, Head: d.head, Rendered: rendered, TargetBranch: target, SourceBranch: source, Definition: c.definition, Name: run.Name, Namespace: run.Namespace,
		Secret: run.Secret, LogURL: w.config.Console.Links(run.Namespace, run.Name).Run, Version: w.r.Version,
	}), nil
}

// distinct refuses a name that is another run's once its placeholders are replaced: one check would have to show both, and
// GitLab's would show whichever reported last. The refusal has a check of its own.
func (w *work) distinct(run *v1alpha1.Run, file string) error {
	for i := range w.event.Status.Runs {
		if other := &w.event.Status.Runs[i]; other.Name != run.Name && other.Pipeline == run.Pipeline {
			name := run.Pipeline
			run.Pipeline = file
			return fault.Invalidf("DuplicateName", "%s: with the variables replaced another PipelineRun is called %s, too: give each its own name", file, name)
		}
	}
	return nil
}

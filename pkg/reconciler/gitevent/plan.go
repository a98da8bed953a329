// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/access"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/match"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/resources"
	"github.com/plumbline-ci/plumbline/pkg/resolve"
	"github.com/plumbline-ci/plumbline/pkg/template"
)

// definitions is the directory authors keep their pipelines in.
const definitions = ".tekton"

// plan reads what decides and writes the decision down. It does nothing else, so it may be repeated until its one
// status write is accepted.
func (r *Reconciler) plan(ctx context.Context, w *work) error {
	repository, err := r.repository(ctx, w)
	if err != nil {
		return err
	}
	if repository == nil {
		return w.accept(ctx, v1alpha1.DispositionRefused, &v1alpha1.Plan{HeadSHA: w.event.Spec.SHA, Reason: reasonRepositoryGone,
			Message: "the Repository this event was accepted for does not exist or names another URL now"})
	}
	client, err := w.connect(ctx)
	if err != nil {
		return err
	}
	decision, why, err := decide(ctx, client, &w.event.Spec)
	if err != nil {
		return err
	}
	if decision != access.Allowed && w.event.Spec.EventType == match.LabelEvent {
		// The check of the pull request's own event asks for approval already; each label would add another one.
		return w.accept(ctx, v1alpha1.DispositionIgnored, &v1alpha1.Plan{HeadSHA: w.event.Spec.SHA, Reason: "NotApproved", Message: why})
	}
	if decision != access.Allowed {
		return w.accept(ctx, v1alpha1.DispositionPending, &v1alpha1.Plan{HeadSHA: w.event.Spec.SHA, Reason: "PendingApproval", Message: why})
	}
	return w.define(ctx, client, repository)
}

// define reads the definitions at one commit and chooses among them.
func (w *work) define(ctx context.Context, client *provider.Client, repository *pacv1alpha1.Repository) error {
	head, err := client.Head(ctx, &w.event.Spec)
	if err != nil {
		return fmt.Errorf("reading commit %s: %w", w.event.Spec.SHA, err)
	}
	if head.Commit.SkipCI {
		return w.accept(ctx, v1alpha1.DispositionSkipped, &v1alpha1.Plan{HeadSHA: head.SHA, Reason: "SkipCI",
			Message: "the message of the commit has a skip CI command"})
	}
	from, err := provenance(ctx, client, head, repository)
	if err != nil {
		return err
	}
	files, err := client.Files(ctx, from, definitions)
	if fault.Is(err, fault.Invalid) {
		return w.refuse(ctx, &v1alpha1.Plan{HeadSHA: head.SHA, DefinitionSHA: from}, err)
	}
	if err != nil {
		return fmt.Errorf("reading %s at %s: %w", definitions, from, err)
	}
	w.references = w.newReferences(client, from, files)
	scope, err := template.New(template.Facts{
		Key: w.event.Name, Variables: resolve.Variables(&w.event.Spec, head, repository.Namespace), Headers: w.event.Spec.Headers,
	})
	if err != nil {
		return err
	}
	return w.choose(ctx, &v1alpha1.Plan{HeadSHA: head.SHA, DefinitionSHA: from}, draft{
		head: head, set: resolve.Load(files), scope: scope,
	})
}

// decide asks who may start the event, and the Git service only if the answer depends on it. An error is never an answer.
func decide(ctx context.Context, client *provider.Client, spec *v1alpha1.GitEventSpec) (access.Decision, string, error) {
	in := access.Input{Trigger: spec.Trigger}
	if spec.PullRequest != nil {
		in.SameRepository = spec.PullRequest.HeadProjectID == spec.Project.ID && spec.Project.ID != 0
	}
	decision, why := access.Decide(in)
	if decision != access.NeedsWriteAccess {
		return decision, why, nil
	}
	if spec.PullRequest == nil {
		return access.Unapproved, why, nil
	}
	canWrite, err := client.CanWrite(ctx, spec.PullRequest.Author)
	if err != nil {
		return access.Unapproved, "", fmt.Errorf("asking for the access of %s: %w", spec.PullRequest.Author, err)
	}
	in.CanWrite = &canWrite
	decision, why = access.Decide(in)
	return decision, why, nil
}

// repository returns the Repository of the event, or nil when it is certain that it is gone.
func (r *Reconciler) repository(ctx context.Context, w *work) (*pacv1alpha1.Repository, error) {
	ref := w.event.Spec.Repository
	found, err := r.repositories.Repositories(ref.Namespace).Get(ref.Name)
	if err != nil || found.Spec.URL != ref.URL { // the cache may lag: only a live answer counts
		found, err = r.pac.Repositories(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading Repository %s/%s: %w", ref.Namespace, ref.Name, err))
	}
	if found.Spec.URL != ref.URL {
		return nil, nil
	}
	return found, nil
}

// draft is what the pipelines of an event are made from.
type draft struct {
	head  provider.Head
	set   *resolve.Set
	scope *template.Scope
}

// choose matches and renders every pipeline found and accepts the result.
func (w *work) choose(ctx context.Context, plan *v1alpha1.Plan, d draft) error {
	choices, err := w.choices(ctx, d)
	if err != nil {
		return err
	}
	w.event.Status.Runs = nil // an attempt before this one may have ended early
	var manifests []*pipelinev1.PipelineRun
	for i, definition := range d.set.Definitions() {
		decision := v1alpha1.Decision{File: definition.File, Document: definition.Document, Pipeline: definition.Name, Reason: choices[i].Reason}
		run, manifest, err := w.prepare(ctx, d, definition, choices[i])
		if err != nil {
			decision.Reason = err.Error()
		}
		plan.Decisions = append(plan.Decisions, decision)
		if fault.Is(err, fault.Ignored) {
			continue
		}
		if err != nil && !fault.Is(err, fault.Invalid) {
			w.event.Status.Runs = nil // the next attempt plans all of them again
			return err
		}
		w.event.Status.Runs = append(w.event.Status.Runs, run)
		if manifest != nil {
			manifests = append(manifests, manifest)
		}
	}
	if err := w.keep(ctx, plan, manifests); err != nil {
		w.event.Status.Runs = nil
		return err
	}
	return w.accept(ctx, disposition(plan, w.event.Status.Runs), plan)
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

// prepare turns one definition into a run. An Ignored error says why it is not selected; an Invalid one is the
// author's to mend and becomes that run's refusal.
func (w *work) prepare(ctx context.Context, d draft, definition resolve.Definition, c choice) (v1alpha1.Run, *pipelinev1.PipelineRun, error) {
	run := v1alpha1.Run{
		Pipeline:  definition.Name,
		Namespace: w.event.Spec.Repository.Namespace,
		Name:      resources.RunName(w.event.Name, definition.File, definition.Document, definition.Name),
	}
	if c.Incomplete {
		run.Note = "Path filters may have missed something: " + incompleteFiles + "."
	}
	rendered, err := w.render(ctx, &run, d, definition, c)
	if fault.Is(err, fault.Invalid) {
		f := fault.Of(err)
		run.Refused = &v1alpha1.Refusal{Reason: f.Reason, Message: f.Message}
		return run, nil, err
	}
	if err != nil {
		return run, nil, err
	}
	run.Pipeline = resolve.OriginalName(rendered) // the definition's name may hold placeholders
	return run, resources.MakePipelineRun(resources.RunInput{
		Event: w.event, Head: d.head, Rendered: rendered, Definition: definition, Name: run.Name, Namespace: run.Namespace,
		Secret: run.Secret, LogURL: w.config.Console.Links(run.Namespace, run.Name).Run, Version: w.r.Version,
	}), nil
}

func (w *work) render(ctx context.Context, run *v1alpha1.Run, d draft, definition resolve.Definition, c choice) (*pipelinev1.PipelineRun, error) {
	if c.err != nil {
		return nil, c.err
	}
	if !c.Selected {
		return nil, fault.Ignoredf("NotSelected", "%s", c.Reason)
	}
	scope := d.scope
	if w.config.SecretAutoCreate {
		run.Secret = resources.SecretName(run.Name)
		scope = scope.With("git_auth_secret", run.Secret)
	}
	for {
		rendered, err := d.set.Render(ctx, definition, scope, w.references)
		needs, unknown := template.NeedsOf(err)
		if !unknown {
			return rendered, err
		}
		if err := w.learn(ctx, needs, scope, &match.Event{}); err != nil {
			return nil, err
		}
	}
}

// refuse tells the author that the directory as a whole cannot be read: one run that was never created carries it.
func (w *work) refuse(ctx context.Context, plan *v1alpha1.Plan, err error) error {
	f := fault.Of(err)
	plan.Reason, plan.Message = f.Reason, f.Message
	w.event.Status.Runs = []v1alpha1.Run{{
		Pipeline: definitions, Namespace: w.event.Spec.Repository.Namespace, Name: resources.RunName(w.event.Name, definitions, 0, definitions),
		Refused: &v1alpha1.Refusal{Reason: f.Reason, Message: f.Message},
	}}
	return w.accept(ctx, v1alpha1.DispositionRuns, plan)
}

// accept is the plan's one status write. If it fails nothing was planned.
func (w *work) accept(ctx context.Context, disposition v1alpha1.Disposition, plan *v1alpha1.Plan) error {
	status := w.event.Status.DeepCopy()
	w.clear(stepPlan)
	w.event.Status.Plan, w.event.Status.Disposition = plan, disposition
	w.conclude()
	err := w.record(ctx)
	if err == nil {
		return nil
	}
	w.event.Status = *status
	w.event.Status.Runs, w.manifests = nil, nil
	return err
}

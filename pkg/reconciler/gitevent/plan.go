// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/access"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/match"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/resolve"
)

// definitions is the directory authors keep their pipelines in.
const definitions = ".tekton"

// plan reads what decides and writes the decision down. It does nothing else, so it may be repeated until its one
// status write is accepted. What cannot be decided yet is left open and planned again, at the same commits.
func (r *Reconciler) plan(ctx context.Context, w *work) error {
	repository, err := r.serves(ctx, w)
	if repository == nil || err != nil {
		return err
	}
	client, err := w.session.Connect(ctx)
	if err != nil {
		return err
	}
	if err := w.complete(ctx, client); err != nil {
		return w.unlessOver(ctx, err)
	}
	if w.planned() {
		return w.unlessMissing(ctx, w.define(ctx, client, repository))
	}
	if allowed, err := w.admit(ctx, client); !allowed || err != nil {
		return err
	}
	return w.unlessMissing(ctx, w.define(ctx, client, repository))
}

// admit asks who may start the event and accepts its end when it is not allowed.
func (w *work) admit(ctx context.Context, client *provider.Client) (bool, error) {
	decision, why, err := decide(ctx, client, &w.event.Spec)
	if err != nil || decision == access.Allowed {
		return err == nil, err
	}
	if w.event.Spec.EventType == match.LabelEvent || w.event.Spec.Comment != nil {
		// The check of the pull request's own event asks for approval already; each label would add another one. A
		// comment must leave nothing on the commit unless it may start something.
		return false, w.accept(ctx, v1alpha1.DispositionIgnored, &v1alpha1.Plan{HeadSHA: w.event.Spec.SHA, Reason: "NotApproved", Message: why})
	}
	return false, w.accept(ctx, v1alpha1.DispositionPending, &v1alpha1.Plan{HeadSHA: w.event.Spec.SHA, Reason: "PendingApproval", Message: why})
}

// serves returns the Repository with the global one's settings, nil if it ended the planning: because the Repository is
// gone, or because the event was superseded while it waited.
func (r *Reconciler) serves(ctx context.Context, w *work) (*pacv1alpha1.Repository, error) {
	repository, err := w.session.Repository(ctx)
	if err != nil {
		return nil, err
	}
	if repository == nil {
		return nil, w.abandon(ctx, v1alpha1.DispositionRefused, credentials.ReasonRepositoryGone, "the Repository this event was accepted for does not exist or names another URL now")
	}
	sha, err := w.superseding(ctx, stepPlan)
	if err != nil {
		return nil, err
	}
	if sha != "" {
		return nil, w.abandon(ctx, v1alpha1.DispositionSuperseded, reasonSuperseded, supersededBy(sha))
	}
	return w.session.WithGlobal(ctx, repository)
}

// define reads the definitions at one commit and chooses among them.
func (w *work) define(ctx context.Context, client *provider.Client, repository *pacv1alpha1.Repository) error {
	if err := w.hear(ctx); err != nil {
		return err
	}
	head, err := client.Head(ctx, &w.event.Spec)
	if err != nil {
		return fmt.Errorf("reading commit %s: %w", w.event.Spec.SHA, err)
	}
	if head.Commit.SkipCI && w.event.Spec.Comment == nil { // somebody asks now
		return w.accept(ctx, v1alpha1.DispositionSkipped, &v1alpha1.Plan{HeadSHA: head.SHA, Reason: "SkipCI",
			Message: "the message of the commit has a skip CI command"})
	}
	plan := w.event.Status.Plan.DeepCopy()
	if plan == nil {
		from, err := provenance(ctx, client, head, repository)
		if err != nil {
			return err
		}
		plan = &v1alpha1.Plan{HeadSHA: head.SHA, DefinitionSHA: from}
	}
	files, set, err := w.load(ctx, client, plan.DefinitionSHA)
	if fault.Is(err, fault.Invalid) && !w.planned() {
		return w.refuse(ctx, plan, err)
	}
	if err != nil {
		return fmt.Errorf("reading %s at %s: %w", definitions, plan.DefinitionSHA, err)
	}
	w.references = w.newReferences(client, plan.DefinitionSHA, files)
	known, err := w.newFacts(head, repository)
	if err != nil {
		return err
	}
	return w.choose(ctx, plan, draft{head: head, set: set, facts: known})
}

// load reads the definitions. Those of an event that is planned already were bounded then.
func (w *work) load(ctx context.Context, client *provider.Client, sha string) ([]git.File, *resolve.Set, error) {
	files, err := client.Files(ctx, sha, definitions)
	if err != nil {
		return nil, nil, err
	}
	set := resolve.Load(files)
	if w.planned() {
		return files, set, nil
	}
	return files, set, set.Bounded()
}

// refuse tells the author that the directory as a whole cannot be read: one run that was never created carries it.
func (w *work) refuse(ctx context.Context, plan *v1alpha1.Plan, err error) error {
	f := fault.Of(err)
	plan.Reason, plan.Message = f.Reason, f.Message
	if w.event.Spec.Comment != nil { // the pull request's own event tells it, once
		return w.accept(ctx, v1alpha1.DispositionIgnored, plan)
	}
	w.event.Status.Runs = []v1alpha1.Run{w.wholeRefused(f)}
	return w.accept(ctx, v1alpha1.DispositionRuns, plan)
}

// unlessOver ends an event that turns out to be about nothing any more; other errors stay what they are.
func (w *work) unlessOver(ctx context.Context, err error) error {
	if f := fault.Of(err); f.Class == fault.Ignored {
		return w.abandon(ctx, v1alpha1.DispositionIgnored, f.Reason, f.Message)
	}
	return err
}

// abandon ends the planning of an event that is not to be planned any further. What was created before goes on.
func (w *work) abandon(ctx context.Context, disposition v1alpha1.Disposition, reason, message string) error {
	if !w.planned() {
		return w.accept(ctx, disposition, &v1alpha1.Plan{HeadSHA: w.event.Spec.SHA, Reason: reason, Message: message})
	}
	plan := w.event.Status.Plan.DeepCopy()
	for i := range plan.Decisions {
		if d := &plan.Decisions[i]; d.Open {
			d.Open, d.Reason, d.Selected = false, message, ""
		}
	}
	for i := range w.event.Status.Runs {
		if run := &w.event.Status.Runs[i]; run.Unresolved {
			w.clear(stepCreate + run.Name)
			run.Unresolved = false
			run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled, Reason: reason, Message: message}
		}
	}
	return w.accept(ctx, w.event.Status.Disposition, plan)
}

// accept is the plan's one status write. If it fails nothing was planned.
func (w *work) accept(ctx context.Context, disposition v1alpha1.Disposition, plan *v1alpha1.Plan) error {
	if plan.Decided() {
		w.clear(stepPlan)
	}
	w.event.Status.Plan, w.event.Status.Disposition = plan, disposition
	w.conclude()
	err := w.record(ctx)
	if err != nil {
		w.event.Status, w.manifests = *w.stored.DeepCopy(), nil
	}
	return err
}

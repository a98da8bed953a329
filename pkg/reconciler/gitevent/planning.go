// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"errors"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// plan reads what decides and writes the decision down. It does nothing else, so it may be repeated until its one
// status write is accepted. What cannot be decided yet is left open and planned again, at the same commits.
func (r *Reconciler) plan(ctx context.Context, w *work) error {
	repository, err := r.serves(ctx, w)
	if repository == nil || err != nil {
		return err
	}
	client, err := w.connect(ctx)
	if err != nil {
		return err
	}
	made, err := plan.Make(ctx, w.input(repository), w.sources(client))
	w.event.Spec = *made.Spec
	var over *plan.Over
	if errors.As(err, &over) {
		return w.abandon(ctx, v1alpha1.DispositionIgnored, over.Why.Reason, over.Why.Message)
	}
	if err == nil {
		err = w.enter(ctx, made)
	}
	return w.unlessMissing(ctx, err)
}

// serves returns the Repository with the global one's settings, nil if it ended the planning: because the Repository is
// gone, or because the event was superseded while it waited.
func (r *Reconciler) serves(ctx context.Context, w *work) (*pacv1alpha1.Repository, error) {
	repository, err := r.repository(ctx, w)
	if err != nil {
		return nil, err
	}
	if repository == nil {
		return nil, w.abandon(ctx, v1alpha1.DispositionRefused, reasonRepositoryGone, "the Repository this event was accepted for does not exist or names another URL now")
	}
	sha, err := w.superseding(ctx, stepPlan)
	if err != nil {
		return nil, err
	}
	if sha != "" {
		return nil, w.abandon(ctx, v1alpha1.DispositionSuperseded, reasonSuperseded, supersededBy(sha))
	}
	return r.withGlobal(ctx, repository)
}

// input is what is planned: the event, and what is open of its plan.
func (w *work) input(repository *pacv1alpha1.Repository) plan.Input {
	return plan.Input{
		Event:      plan.Event{Namespace: w.event.Namespace, Name: w.event.Name, Annotations: w.event.Annotations, Spec: &w.event.Spec},
		Repository: repository, Config: w.config, Version: w.r.Version, Earlier: earlier(&w.event.Status),
	}
}

// earlier is what a status says of a plan, nil when it has none.
func earlier(s *v1alpha1.GitEventStatus) *plan.Earlier {
	if s.Plan == nil {
		return nil
	}
	before := &plan.Earlier{HeadSHA: s.Plan.HeadSHA, DefinitionSHA: s.Plan.DefinitionSHA}
	for _, d := range s.Plan.Decisions {
		before.Decisions = append(before.Decisions, plan.Decision{
			File: d.File, Document: d.Document, Pipeline: d.Pipeline, Open: d.Open, Selected: d.Selected, Reason: d.Reason,
		})
	}
	for _, run := range s.Runs {
		before.Runs = append(before.Runs, plan.Run{
			Pipeline: run.Pipeline, Namespace: run.Namespace, Name: run.Name, Note: run.Note, Secret: run.Secret, Refused: run.Refused, Unresolved: run.Unresolved,
		})
	}
	return before
}

// enter writes a plan into the status, and its manifests where they are kept. Nothing is written as long as there is nothing
// to create and something is open: an event that turns out to be for no pipeline leaves no trace.
func (w *work) enter(ctx context.Context, made *plan.Plan) error {
	next := w.planOf(made)
	if err := w.keep(ctx, next, manifestsOf(made), made.Secrets); err != nil {
		return err
	}
	w.noteWaits(made)
	runs := w.runsOf(made)
	if made.Wait != nil && (len(runs) == 0 || w.unchanged(next, runs)) {
		return made.Wait
	}
	w.event.Status.Runs = runs
	if err := w.accept(ctx, made.Disposition, next); err != nil {
		return err
	}
	return made.Wait
}

// planOf is what the status says of a plan. What is kept of earlier attempts stays.
func (w *work) planOf(made *plan.Plan) *v1alpha1.Plan {
	next := &v1alpha1.Plan{}
	if w.planned() {
		next = w.event.Status.Plan.DeepCopy()
	}
	next.HeadSHA, next.DefinitionSHA, next.Reason, next.Message = made.HeadSHA, made.DefinitionSHA, made.Reason, made.Message
	next.Decisions = nil
	for _, d := range made.Decisions {
		next.Decisions = append(next.Decisions, v1alpha1.Decision{
			File: d.File, Document: d.Document, Pipeline: d.Pipeline, Open: d.Open, Selected: d.Selected, Reason: d.Reason,
		})
	}
	return next
}

// runsOf are the runs of the status as a plan has them. What an attempt before it has decided stands.
func (w *work) runsOf(made *plan.Plan) []v1alpha1.Run {
	var runs []v1alpha1.Run
	for i, run := range made.Runs {
		if w.decidedBefore(i) {
			runs = append(runs, w.event.Status.Runs[i])
			continue
		}
		runs = append(runs, v1alpha1.Run{
			Pipeline: run.Pipeline, Namespace: run.Namespace, Name: run.Name, Note: run.Note, Secret: run.Secret, Refused: run.Refused, Unresolved: run.Unresolved,
		})
	}
	return runs
}

// noteWaits records for which runs something that they refer to is waited for, and for which no more.
func (w *work) noteWaits(made *plan.Plan) {
	for i, run := range made.Runs {
		switch step := stepCreate + run.Name; {
		case run.Wait != nil:
			_ = w.settle(step, run.Wait) // it is part of the plan's wait
		case !run.Unresolved && !w.decidedBefore(i):
			w.clear(step)
		}
	}
}

// decidedBefore tells whether the run at an index was decided before.
func (w *work) decidedBefore(i int) bool {
	return i < len(w.event.Status.Runs) && !w.event.Status.Runs[i].Unresolved
}

func manifestsOf(made *plan.Plan) []*pipelinev1.PipelineRun {
	var manifests []*pipelinev1.PipelineRun
	for _, run := range made.Runs {
		if run.Manifest != nil {
			manifests = append(manifests, run.Manifest)
		}
	}
	return manifests
}

// unchanged tells whether a plan is the one that is stored.
func (w *work) unchanged(next *v1alpha1.Plan, runs []v1alpha1.Run) bool {
	return equality.Semantic.DeepEqual(next, w.stored.Plan) && equality.Semantic.DeepEqual(runs, w.stored.Runs)
}

// abandon ends the planning of an event that is not to be planned any further. What was created before goes on.
func (w *work) abandon(ctx context.Context, disposition v1alpha1.Disposition, reason, message string) error {
	if !w.planned() {
		return w.accept(ctx, disposition, &v1alpha1.Plan{HeadSHA: w.event.Spec.SHA, Reason: reason, Message: message})
	}
	next := w.event.Status.Plan.DeepCopy()
	for i := range next.Decisions {
		if d := &next.Decisions[i]; d.Open {
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
	return w.accept(ctx, w.event.Status.Disposition, next)
}

// accept is the plan's one status write. If it fails nothing was planned.
func (w *work) accept(ctx context.Context, disposition v1alpha1.Disposition, next *v1alpha1.Plan) error {
	if next.Decided() {
		w.clear(stepPlan)
	}
	w.event.Status.Plan, w.event.Status.Disposition = next, disposition
	w.conclude()
	err := w.record(ctx)
	if err != nil {
		w.event.Status, w.manifests = *w.stored.DeepCopy(), nil
	}
	return err
}

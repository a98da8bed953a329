// SPDX-License-Identifier: Apache-2.0

// Package create is the step that makes PipelineRuns (I-2: each planned name once).
package create

import (
	"context"
	"slices"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/gitauth"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/slotwait"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// Step creates the recorded PipelineRuns that do not exist yet, each with its git-auth secret. Each
// run of the status that is neither created nor refused gets a UID, a refusal, a result (cancelled)
// or a wait.
type Step struct {
	Tekton  tektonv1.PipelineRunsGetter
	GitAuth gitauth.Secrets
	Metrics *metrics.Metrics
	Queue   *slotwait.Waiters
	// Created are the PipelineRuns that no stored status knows yet.
	Created Created
	// Quotas are the namespaces whose ResourceQuota is exhausted.
	Quotas FullNamespaces
}

// retryAfter is how long after the failure of an attempt the next one is created: a cluster problem
// may have ended by then.
const retryAfter = 10 * time.Second

// New returns the step of an installation.
func New(c deps.Cluster, o deps.Options, secrets gitauth.Secrets, m *metrics.Metrics) *Step {
	return &Step{Tekton: c.Tekton, GitAuth: secrets, Metrics: m, Queue: slotwait.New(c, o)}
}

// Do creates the runs. A run that is refused or waits does not stop the others. The held pipelines
// are not created yet, because a newer event may replace their runs; a cancelled run is not held.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt, held []string) []error {
	slot := s.Queue.Of(a)
	s.recall(a)
	faults := attempt.Each(ctx, uncreated(a, held), a.Within(attempt.LongLimit, a.Record.WriteOverdue),
		func(ctx context.Context, run *v1alpha1.Run) error {
			step := v1alpha1.StepCreate + run.Name
			err := slot.IfDue(ctx, run, func() error {
				return a.Waits.WithBackoff(attempt.CreateStep(a.Event, run), func() error {
					return a.Traced(ctx, step, func(ctx context.Context) error { return s.createRun(ctx, a, run) })
				})
			})
			f := fault.Of(err)
			err = a.Waits.Update(step, s.conclude(a, run, err))
			if f != nil && f.Reason == attempt.ReasonPaused { // another process knows better what to create
				return attempt.Stop(err)
			}
			return err
		})
	refuseUnserved(a)
	return faults
}

// refuseUnserved changes the disposition of an event to refused if none of its runs was created and
// none can be any more, or the event was given up. Its delivery may then be processed again.
func refuseUnserved(a *attempt.Attempt) {
	s := &a.Event.Status
	if !a.Decided() {
		return
	}
	runs := slices.DeleteFunc(slices.Clone(s.Runs), func(run v1alpha1.Run) bool { return run.Skipped() })
	for i := range runs {
		if run := &runs[i]; run.Started() || run.Result == nil ||
			!neverCreatable(run.Result.Reason) && run.Result.Reason != attempt.ReasonGivenUp {
			return
		}
	}
	if len(runs) > 0 {
		s.Disposition = v1alpha1.DispositionRefused
		s.Plan.Reason, s.Plan.Message = runs[0].Result.Reason, runs[0].Result.Message
	}
}

// uncreated returns the runs to create. Runs that have not failed yet come first.
func uncreated(a *attempt.Attempt, held []string) []*v1alpha1.Run {
	var fresh, waiting []*v1alpha1.Run
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if !run.Creatable() || slices.Contains(held, run.Pipeline) && a.Event.Cancelled(run.Pipeline) == nil {
			continue
		}
		if a.Waits.Of(v1alpha1.StepCreate+run.Name) == nil {
			fresh = append(fresh, run)
			continue
		}
		waiting = append(waiting, run)
	}
	return append(fresh, attempt.Rotated(true, waiting)...)
}

// conclude applies the outcome of an attempt to create a run. It returns what the run waits for.
func (s *Step) conclude(a *attempt.Attempt, run *v1alpha1.Run, err error) error {
	wait := a.Waits.Of(v1alpha1.StepCreate + run.Name)
	v := judge(err, wait, a.Clock.Now(), a.Waits.ShouldGiveUp(wait))
	if v.refused != nil {
		run.Refused = v.refused
	}
	if v.result != nil {
		run.Result = v.result
	}
	return v.wait
}

// createRun creates the git-auth secret, then the PipelineRun, and records it. The status knows
// both names, so the next attempt finds a PipelineRun whose creation was not answered.
func (s *Step) createRun(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) error {
	runs := s.Tekton.PipelineRuns(run.Namespace)
	if why := a.Event.Cancelled(run.Pipeline); why != nil {
		if err := a.Record.Confirm(ctx); err != nil { // another process may be about to create it
			return err
		}
		found, err := cancelled(ctx, runs, run, a.Event.Namespace+"/"+a.Event.Name+"/", why)
		if err == nil {
			s.exists(a, run, found)
		}
		return err
	}
	if err := s.early(run, a.Clock.Now()); err != nil {
		return err
	}
	// Thousands of runs may wait for the quota: only the run that is tried asks Git.
	if err := s.Quotas.Full(run.Namespace, run.Name, a.Clock.Now()); err != nil {
		return err
	}
	if err := s.replaced(ctx, a, run); err != nil {
		return err
	}
	values, err := a.StoredPlan.Values(ctx)
	if err != nil {
		return err
	}
	begin := a.Clock.Now()
	err = s.createWith(ctx, a, run, values)
	now := a.Clock.Now()
	s.Quotas.Note(run.Namespace, run.Name, err, now.Sub(begin), now)
	if f := fault.Of(err); f != nil && f.Reason == fault.ReasonNamespaceMissing {
		err = unlessGone(ctx, a, f)
	}
	return plans.Masked(err, values)
}

// replaced returns the fault of a run that a newer commit has replaced. No commit replaces another
// attempt of a run that has started, whatever its creation waits for.
func (s *Step) replaced(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) error {
	if run.Attempt() > 1 {
		return nil
	}
	sha, err := a.NewerCommit(ctx, v1alpha1.StepCreate+run.Name)
	if err != nil {
		return err
	}
	return superseded(ctx, s.Tekton.PipelineRuns(run.Namespace), run, sha)
}

// early returns a wait if it is too early for the next attempt of a run. Tekton's clock may be
// ahead.
func (s *Step) early(run *v1alpha1.Run, now time.Time) error {
	if run.Attempt() == 1 {
		return nil
	}
	last := run.Attempts[len(run.Attempts)-1]
	if last.CompletedAt == nil {
		return nil
	}
	left := min(retryAfter, last.CompletedAt.Add(retryAfter).Sub(now))
	if left <= 0 {
		return nil
	}
	return fault.Throttledf(attempt.ReasonAttemptFailed, left,
		"attempt %d, PipelineRun %s, failed because of the cluster: %s", run.Attempt()-1, last.Name, last.Cause)
}

// unlessGone ends the wait for a namespace that was deleted together with the Repository.
func unlessGone(ctx context.Context, a *attempt.Attempt, missing *fault.Error) error {
	if ref := a.Event.Spec.Repository; a.Git.RepositoryGone(ctx) {
		return fault.Operatorf(
			credentials.ReasonRepositoryGone, "Repository %s/%s is gone, and its namespace", ref.Namespace, ref.Name)
	}
	return missing // also when the Repository cannot be read: the next attempt asks again
}

func (s *Step) createWith(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, values map[string]string) error {
	manifest, err := a.Manifest(ctx, run)
	if err != nil {
		return err
	}
	if manifest, err = plans.Reveal(manifest, values); err != nil {
		return err
	}
	if order := s.Queue.Of(a).Order(ctx); order != "" {
		manifest.Annotations[pipelinesascode.ExecutionOrder] = order
	}
	if run.WithoutState {
		resources.RemoveState(manifest)
	}
	created, err := createOrAdopt(ctx, s.Tekton.PipelineRuns(run.Namespace), manifest,
		func(ctx context.Context) error { return s.prepare(ctx, a, run) })
	if err != nil {
		return err
	}
	s.exists(a, run, created)
	s.Metrics.Created(ctx)
	return nil
}

// prepare is done before a PipelineRun is created: its secret must be there, and this process must
// still own the event.
func (s *Step) prepare(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) error {
	if err := a.Record.Confirm(ctx); err != nil {
		return err
	}
	if run.Secret != "" {
		renewAt, err := s.GitAuth.Ensure(ctx, a, run)
		if renewAt != nil {
			run.SecretRenewAt = renewAt
		}
		if err != nil {
			return err
		}
	}
	return a.Record.Confirm(ctx) // the token may have taken long
}

// A planned name is created once (I-2). The name alone prevents a second PipelineRun while the
// first exists. Once it is deleted the status prevents one, which has its UID. docs/adr/0013
// describes the time between the creation and the record.

// exists notes that the PipelineRun of a run exists, created now or earlier.
func (s *Step) exists(a *attempt.Attempt, run *v1alpha1.Run, found *pipelinev1.PipelineRun) {
	run.UID = found.UID
	s.Created.Note(a.Event.Name, a.Event.UID, found.Name, found.UID)
	a.Seen[found.Name] = found
	a.Record.NoteCreated()
}

// recall gives runs the UIDs that this process could not record before. A PipelineRun that was
// deleted meanwhile is not created again.
func (s *Step) recall(a *attempt.Attempt) {
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if !run.Creatable() {
			continue
		}
		if run.UID = s.Created.UID(a.Event.Name, a.Event.UID, run.Name); run.UID != "" {
			a.Waits.Clear(v1alpha1.StepCreate + run.Name)
			a.Record.NoteCreated()
		}
	}
}

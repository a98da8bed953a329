// SPDX-License-Identifier: Apache-2.0

// Package planning is the step that records what an event starts, and why not: it calls pkg/plan
// and turns the answer into the status.
package planning

import (
	"context"
	"errors"
	"slices"
	"sync"

	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	pacclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// Step gives an event its plan: decisions, runs, and where their manifests are stored.
type Step struct {
	Providers map[string]provider.Provider
	Web       *web.Client
	// Events are what was recorded of the same pull request or commit, read live.
	Events history.Writer
	// Tekton reads PipelineRuns of Pipelines-as-Code, live, for /retest, /ok-to-test and /cancel.
	Tekton tektonv1.PipelineRunsGetter
	// Version is written to the version label of PipelineRuns.
	Version string
	Owners  Owners
	// Readable returns the other repositories whose files the repository's own code may refer to.
	Readable func(
		context.Context, *attempt.Attempt, *pacv1alpha1.Repository, *provider.Client,
	) ([]v1alpha1.Project, error)
	Metrics       *metrics.Metrics
	Cancellations Closings
	// NotFound is what the Git service did not show.
	NotFound *NotFound
	// Denials caches who may not write.
	Denials Denials
	// CrashLoop guards against events that may have crashed another process.
	CrashLoop *CrashLoopGuard
	// Repositories get a condition that says which teams of their policies are missing.
	Repositories pacclient.RepositoriesGetter
	// Sets caches the definitions that were read last.
	Sets plan.Sets
}

// Owners decides whether a Repository's namespace may serve an event (claim.Checker has the
// contract).
type Owners interface {
	Serves(ctx context.Context, repository *pacv1alpha1.Repository, event *v1alpha1.GitEventSpec, files interface {
		DefaultBranch(ctx context.Context) (sha string, err error)
		File(ctx context.Context, sha, path string) ([]byte, error)
	}) error
}

// ReasonParked is the reason of an event that is given up because planning it panics.
const ReasonParked = "Parked"

// Do plans the event, unless that has panicked too often. A panic makes only this step wait: what
// is planned already is created and reported meanwhile. An event with a plan is never parked. A run
// that exists must be reported, so the rest is retried slowly for as long as it takes.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) (err error) {
	if fresh(a) && a.Event.Status.Panics >= attempt.MaxPanics {
		return s.park(ctx, a)
	}
	if wait := a.Waits.Of(v1alpha1.StepPlan); wait != nil && plans.OverBudget(wait.Reason) {
		if err := a.StoredPlan.WithinBudget(); err != nil { // a thousand events may wait: none makes a call
			return err
		}
	}
	if err := a.StoredPlan.Queued(); err != nil { // otherwise each attempt would read and render everything up to there
		return err
	}
	if fresh(a) {
		end, err := s.begin(ctx, a)
		if err != nil || end == nil {
			return err
		}
		defer end()
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = a.Panicked(ctx, cause)
		}
	}()
	return s.plan(ctx, a)
}

// plan reads what the decision depends on and records the decision. It does nothing else, so it may
// be repeated until its one status write succeeds. What cannot be decided yet stays open and is
// planned again, at the same commits.
func (s *Step) plan(ctx context.Context, a *attempt.Attempt) error {
	if closed, err := s.closed(ctx, a); closed || err != nil {
		return err
	}
	met := &refusals{a: a, serves: func() bool { return s.Serves(ctx, a) }}
	repository, err := serves(ctx, a)
	if repository == nil || err != nil {
		met.meet(err)
		return err
	}
	client, err := a.Git.Connect(ctx)
	if err != nil {
		return err
	}
	who := s.access(a, client)
	sources := s.sources(a, client, who)
	sources.OwnAddresses = addresses{client, sync.OnceValues(func() ([]v1alpha1.Project, error) {
		return s.Readable(ctx, a, repository, client)
	})}
	sources.Serves = func(ctx context.Context, event *v1alpha1.GitEventSpec) error {
		return s.Owners.Serves(ctx, repository, event, client)
	}
	sources.AcceptLess = met.enough
	made, err := plan.Make(ctx, s.input(a, repository), sources)
	if fresh(a) {
		conditions := conditions{s.Repositories, a.Event.Namespace}
		teams{conditions}.tell(ctx, repository, who.Teams)
		expiry{conditions}.tell(ctx, a, repository)
	}
	made.Spec.ReceivedAt = a.Event.Spec.ReceivedAt // the plan has the API server's time (AsRecorded)
	a.Event.Spec = *made.Spec
	var over *plan.IgnoredError
	if errors.As(err, &over) {
		return abandon(ctx, a, v1alpha1.DispositionIgnored, over.Why.Reason, over.Why.Message)
	}
	shown := met.shown(ctx, client, made, err)
	switch {
	case err == nil:
		err = recordPlan(ctx, a, made, shown)
	case shown != nil:
		err = enterWaiting(ctx, a, made, shown, err)
	}
	return unlessMissing(ctx, a, err)
}

// serves returns the Repository with the global one's settings. It returns nil if it has ended the
// planning, because the Repository is gone or the event was superseded while it waited.
func serves(ctx context.Context, a *attempt.Attempt) (*pacv1alpha1.Repository, error) {
	repository, err := a.Git.Repository(ctx)
	if err != nil {
		return nil, err
	}
	if repository == nil {
		return nil, abandon(
			ctx,
			a,
			v1alpha1.DispositionRefused,
			credentials.ReasonRepositoryGone,
			"the Repository this event was accepted for does not exist or names another URL now",
		)
	}
	sha, err := a.NewerCommit(ctx, v1alpha1.StepPlan)
	if err != nil {
		return nil, err
	}
	if sha != "" {
		return nil, abandon(ctx, a, v1alpha1.DispositionSuperseded, attempt.ReasonSuperseded, attempt.SupersededBy(sha))
	}
	return a.Git.WithGlobal(ctx, repository)
}

// input returns what is planned: the event, and the undecided part of its plan.
func (s *Step) input(a *attempt.Attempt, repository *pacv1alpha1.Repository) plan.Input {
	return plan.Input{
		Event: plan.Event{
			Namespace:   a.Event.Namespace,
			Name:        a.Event.Name,
			Annotations: a.Event.Annotations,
			Spec:        a.Event.AsRecorded(),
		},
		Repository: repository,
		Config:     a.Config,
		Shared:     a.Git.Shared(),
		Version:    s.Version,
		Earlier:    earlier(&a.Event.Status),
		Sets:       &s.Sets,
	}
}

// fresh reports whether nothing of the event is decided.
func fresh(a *attempt.Attempt) bool { return earlier(&a.Event.Status) == nil }

// earlier returns the plan in a status, nil if there is none, or only one that waits for its
// definitions.
func earlier(s *v1alpha1.GitEventStatus) *plan.Earlier {
	if s.Plan == nil || !s.Plan.Decided() && s.Plan.DefinitionSHA == "" {
		return nil
	}
	before := &plan.Earlier{Bytes: plans.Bytes(s.Plan), Priority: s.Plan.Priority, Commits: plan.Commits{
		HeadSHA:       s.Plan.HeadSHA,
		DefinitionSHA: s.Plan.DefinitionSHA,
		Approval:      s.Plan.Approval,
		EndsPending:   s.Plan.EndsPending,
	}, Decisions: slices.Clone(s.Plan.Decisions)}
	for _, run := range s.Runs {
		if run.Pipeline == plan.Definitions && run.Unresolved {
			continue // it stands for an undecided plan
		}
		before.Runs = append(before.Runs, plan.Run{
			Pipeline:   run.Pipeline,
			Namespace:  run.Namespace,
			Name:       run.Key(),
			Shown:      plan.Shown{Note: run.Note, LinkParams: run.LinkParams},
			Secret:     run.Secret,
			Refused:    refusalOf(&run),
			Unresolved: run.Unresolved,
		})
	}
	return before
}

// recordPlan records a plan in the status, and stores its manifests. It writes nothing while there
// is nothing to create and something is undecided: an event that turns out to start no pipeline
// leaves no trace.
func recordPlan(ctx context.Context, a *attempt.Attempt, made *plan.Plan, shown *v1alpha1.Run) error {
	next := planOf(a, made)
	if len(made.Secrets) > 0 {
		if err := a.Record.Confirm(ctx); err != nil { // it stores secret values
			return err
		}
	}
	if err := a.StoredPlan.Save(ctx, next, manifestsOf(made), made.Secrets); err != nil {
		return err
	}
	noteWaits(a, made)
	runs, disposition := runsOf(a, made), made.Disposition
	if shown != nil {
		runs = append(runs, *shown)
		if shown.Unresolved && disposition == v1alpha1.DispositionIgnored { // as far as decided
			disposition, next.Reason, next.Message = v1alpha1.DispositionRuns, reasonWaiting, "no pipeline is known to be for this event yet"
		}
	}
	if made.Wait != nil && (len(runs) == 0 || a.Record.Unchanged(next, runs)) {
		return made.Wait
	}
	started := func(run v1alpha1.Run) bool { return run.Name != plan.WaitingRun(a.Event.Name) }
	if !slices.ContainsFunc(a.Event.Status.Runs, started) { // so far only the check that waits was shown
		next.At = nil
	}
	a.Event.Status.Runs = runs
	announce(a, next, made.Runs)
	a.Event.Status.Reply = replyOf(a, made)
	if err := writePlan(ctx, a, disposition, next); err != nil {
		return err
	}
	return made.Wait
}

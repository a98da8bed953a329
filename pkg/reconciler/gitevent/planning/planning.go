// SPDX-License-Identifier: Apache-2.0

// Package planning is the step that writes down what an event starts, and why not: it asks pkg/plan
// and turns the answer into the status.
package planning

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// Step takes an event of which something is open, and gives its plan: decisions, runs and where
// their manifests are kept.
type Step struct {
	Providers map[string]provider.Provider
	Web       *web.Client
	// Events are what was recorded of the same pull request or commit, read live.
	Events history.Writer
	// Version is written to the version label of PipelineRuns.
	Version  string
	Owners   Owners
	Metrics  *metrics.Metrics
	Closings Closings
	// Misses is what the Git service did not show.
	Misses *Misses
	// Denials is who may not write.
	Denials Denials
	// Beginnings are recorded for events that another process may have died of.
	Beginnings *CrashLoopGuard
	// Repositories are told which teams of their policies are missing.
	Repositories pacclient.RepositoriesGetter
	// Sets are the definitions that were read last.
	Sets plan.Sets
}

// Owners reports whether what an event is of may be served in a Repository's namespace
// (claim.Keeper has the contract).
type Owners interface {
	Serves(ctx context.Context, repository *pacv1alpha1.Repository, event *v1alpha1.GitEventSpec, files interface {
		DefaultBranch(ctx context.Context) (sha string, err error)
		File(ctx context.Context, sha, path string) ([]byte, error)
	}) error
}

// ReasonParked ends an event whose planning panics.
const ReasonParked = "Parked"

// Do plans, unless that has panicked too often. A panic is a wait of this step alone: what is
// planned already is created and reported meanwhile. And what is planned is never parked: a run
// that exists must be reported, so the rest is tried again slowly for as long as it takes.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) (err error) {
	if fresh(a) && a.Event.Status.Panics >= attempt.MaxPanics {
		return s.park(ctx, a)
	}
	if wait := a.Waits.Of(v1alpha1.StepPlan); wait != nil && plans.OverBudget(wait.Reason) {
		if err := a.Kept.HasRoom(); err != nil { // a thousand events may wait: none asks anybody
			return err
		}
	}
	if err := a.Kept.Waits(); err != nil { // it would be read and rendered up to there each time
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

// plan reads what decides and writes the decision down. It does nothing else, so it may be repeated
// until its one status write is accepted. What cannot be decided yet is left open and planned
// again, at the same commits.
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
	sources.Serves = func(ctx context.Context, event *v1alpha1.GitEventSpec) error {
		return s.Owners.Serves(ctx, repository, event, client)
	}
	sources.Enough = met.enough
	made, err := plan.Make(ctx, s.input(a, repository), sources)
	if fresh(a) {
		teams{s.Repositories, a.Event.Namespace}.tell(ctx, repository, who.Teams)
	}
	made.Spec.ReceivedAt = a.Event.Spec.ReceivedAt // what is planned has the API server's time (AsRecorded)
	a.Event.Spec = *made.Spec
	var over *plan.Over
	if errors.As(err, &over) {
		return abandon(ctx, a, v1alpha1.DispositionIgnored, over.Why.Reason, over.Why.Message)
	}
	shown := met.shown(ctx, client, made, err)
	switch {
	case err == nil:
		err = enter(ctx, a, made, shown)
	case shown != nil:
		err = enterWaiting(ctx, a, made, shown, err)
	}
	return unlessMissing(ctx, a, err)
}

// serves returns the Repository with the global one's settings, nil if it ended the planning:
// because the Repository is gone, or because the event was superseded while it waited.
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
	sha, err := a.Superseding(ctx, v1alpha1.StepPlan)
	if err != nil {
		return nil, err
	}
	if sha != "" {
		return nil, abandon(ctx, a, v1alpha1.DispositionSuperseded, attempt.ReasonSuperseded, attempt.SupersededBy(sha))
	}
	return a.Git.WithGlobal(ctx, repository)
}

// input is what is planned: the event, and what is open of its plan.
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

// earlier is what a status says of a plan, nil when it has none, or one that only waits for its
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
	}}
	for _, d := range s.Plan.Decisions {
		before.Decisions = append(before.Decisions, plan.Decision{
			File: d.File, Document: d.Document, Pipeline: d.Pipeline, Open: d.Open, Selected: d.Selected, Reason: d.Reason,
		})
	}
	for _, run := range s.Runs {
		if run.Pipeline == plan.Definitions && run.Unresolved {
			continue // it stands for none
		}
		before.Runs = append(before.Runs, plan.Run{
			Pipeline:   run.Pipeline,
			Namespace:  run.Namespace,
			Name:       run.Name,
			Note:       run.Note,
			Secret:     run.Secret,
			Refused:    run.Refused,
			Unresolved: run.Unresolved,
		})
	}
	return before
}

// enter writes a plan into the status, and its manifests where they are kept. Nothing is written as
// long as there is nothing to create and something is open: an event that turns out to be for no
// pipeline leaves no trace.
func enter(ctx context.Context, a *attempt.Attempt, made *plan.Plan, shown *v1alpha1.Run) error {
	next := planOf(a, made)
	if len(made.Secrets) > 0 {
		if err := a.Record.Confirm(ctx); err != nil { // what it leaves would be secret
			return err
		}
	}
	if err := a.Kept.Keep(ctx, next, manifestsOf(made), made.Secrets); err != nil {
		return err
	}
	noteWaits(a, made)
	runs, disposition := runsOf(a, made), made.Disposition
	if shown != nil {
		runs = append(runs, *shown)
		if shown.Unresolved && disposition == v1alpha1.DispositionIgnored { // as far as it is decided
			disposition, next.Reason, next.Message = v1alpha1.DispositionRuns, reasonWaiting, "no pipeline is known to be for this event yet"
		}
	}
	if made.Wait != nil && (len(runs) == 0 || a.Record.Unchanged(next, runs)) {
		return made.Wait
	}
	started := func(run v1alpha1.Run) bool { return run.Name != plan.WaitingRun(a.Event.Name) }
	if !slices.ContainsFunc(a.Event.Status.Runs, started) { // so far it has only shown what it waits for
		next.At = nil
	}
	a.Event.Status.Runs = runs
	announce(a, next, made.Runs)
	a.Event.Status.Reply = replyOf(a, made)
	if err := accept(ctx, a, disposition, next); err != nil {
		return err
	}
	return made.Wait
}

// replyOf returns the status of the reply to a command, or nil if the event needs no reply.
func replyOf(a *attempt.Attempt, made *plan.Plan) *v1alpha1.Reply {
	if made.Command == "" || a.Event.Status.Reply != nil {
		return a.Event.Status.Reply
	}
	return &v1alpha1.Reply{Command: made.Command, Untrusted: made.Untrusted}
}

// announce tells people of an approval, and of what is not done as they have written it, once.
func announce(a *attempt.Attempt, next *v1alpha1.Plan, made []plan.Run) {
	for _, run := range made { // only one that is new has read it
		for _, problem := range run.Problems() {
			a.Waits.Tell(problem.Reason, run.Pipeline+": "+problem.Says)
		}
	}
	given := next.Approval
	if given == nil || !fresh(a) {
		return
	}
	switch {
	case given.Event == a.Event.Name:
		a.Waits.Announce(
			"Approved",
			fmt.Sprintf("%s has approved commit %s of pull request %s", given.By, next.HeadSHA, a.Event.Spec.Ref()),
		)
	case given.Of(next.HeadSHA) != next.HeadSHA:
		a.Waits.Announce("ApprovalRemembered", "pull request "+a.Event.Spec.Ref()+": "+given.Says(next.HeadSHA))
	}
}

// planOf is what the status says of a plan. What is kept of earlier attempts stays.
func planOf(a *attempt.Attempt, made *plan.Plan) *v1alpha1.Plan {
	next := &v1alpha1.Plan{}
	if a.Planned() {
		next = a.Event.Status.Plan.DeepCopy()
	}
	next.HeadSHA, next.DefinitionSHA, next.Reason, next.Message = made.HeadSHA, made.DefinitionSHA, made.Reason, made.Message
	next.Ref = refOf(&a.Event.Spec)
	next.OwnHead = next.Ref == "" && made.Approval == nil && ownHead(&a.Event.Spec)
	next.Approval, next.EndsPending, next.Priority = made.Approval, made.EndsPending, made.Priority
	next.Cancels, next.Decisions = made.Cancels, nil
	for _, d := range made.Decisions {
		next.Decisions = append(next.Decisions, v1alpha1.Decision{
			File: d.File, Document: d.Document, Pipeline: d.Pipeline, Open: d.Open, Selected: d.Selected, Reason: d.Reason,
		})
	}
	return next
}

// refOf is the branch or tag of an event whose record does not tell it, "" for every other one.
func refOf(spec *v1alpha1.GitEventSpec) string {
	if spec.PullRequest == nil && (spec.Comment != nil || spec.Rerun != nil) {
		return spec.BaseRef
	}
	return ""
}

// ownHead reports whether a comment or a re-run is of a pull request from a branch of the
// repository itself.
func ownHead(spec *v1alpha1.GitEventSpec) bool {
	return (spec.Comment != nil || spec.Rerun != nil) && spec.PullRequest != nil &&
		spec.Project.ID != 0 && spec.PullRequest.HeadProjectID == spec.Project.ID
}

// SPDX-License-Identifier: Apache-2.0

// Package create is the step that makes PipelineRuns (I-2: each planned name once).
package create

import (
	"context"
	"fmt"
	"slices"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/clients"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/gitauth"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/queue"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// EchoLimit is how long a denial whose text echoes an outage is retried before it is believed
// (C11).
const EchoLimit = 10 * time.Minute

// Step makes the recorded PipelineRuns that do not exist yet, each with its git-auth secret. It
// takes the runs of the status that are neither created nor refused, and gives each a UID, a
// refusal, a result (cancelled) or a wait.
type Step struct {
	Tekton  tektonv1.PipelineRunsGetter
	GitAuth gitauth.Secrets
	Metrics *metrics.Metrics
	Line    *queue.Line
	// Created is what the status does not know yet.
	Created Created
	// Quotas is where there is no room for PipelineRuns.
	Quotas Memory
}

// New returns the step of an installation.
func New(c clients.Cluster, o clients.Options, secrets gitauth.Secrets, m *metrics.Metrics) *Step {
	return &Step{Tekton: c.Tekton, GitAuth: secrets, Metrics: m, Line: queue.New(c, o)}
}

// Do goes through the runs. Each waits for itself: one that is refused or has to wait does not stop
// the others. Those of the held pipelines are not created yet, because a newer event may have taken
// their place; what is cancelled is held by nothing.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt, held []string) []error {
	var faults []error
	over, line := a.Turn(attempt.LongTurn), s.Line.Of(a)
	s.recall(a)
	for _, run := range uncreated(a, held) {
		if err := attempt.First([]error{a.Record.WriteMade(ctx, attempt.AfterCreate), over()}); err != nil {
			return append(faults, err)
		}
		step := v1alpha1.StepCreate + run.Name
		err := line.Due(ctx, run, func() error {
			return a.Waits.Try(attempt.Create(a.Event, run), func() error {
				return a.Traced(ctx, step, func(ctx context.Context) error { return s.createRun(ctx, a, run) })
			})
		})
		faults = append(faults, a.Waits.Settle(step, judge(a, step, run, err)))
		if f := fault.Of(err); f != nil && f.Reason == attempt.ReasonPaused {
			return faults // somebody else knows better what to create
		}
	}
	refuseUnserved(a)
	return faults
}

// refuseUnserved changes the disposition of an event that turns out to have no place to run in, or
// that was given up: of its runs none was created, and none will be. Its delivery may then be
// processed again.
func refuseUnserved(a *attempt.Attempt) {
	s := &a.Event.Status
	if !a.Decided() || len(s.Runs) == 0 {
		return
	}
	for i := range s.Runs {
		if run := &s.Runs[i]; run.UID != "" || run.Result == nil ||
			!noPlace(run.Result.Reason) && run.Result.Reason != attempt.ReasonGivenUp {
			return
		}
	}
	s.Disposition, s.Plan.Reason, s.Plan.Message = v1alpha1.DispositionRefused, s.Runs[0].Result.Reason, s.Runs[0].Result.Message
}

// noPlace reports whether a run can never be created, for no fault of its author: the place it was
// to run in is gone, or what was to run.
func noPlace(reason string) bool {
	return reason == fault.ReasonNamespaceTerminating || reason == credentials.ReasonRepositoryGone ||
		reason == plans.ReasonPayloadMissing
}

// uncreated returns the runs to create, those first that nothing is known against.
func uncreated(a *attempt.Attempt, held []string) []*v1alpha1.Run {
	var fresh, waiting []*v1alpha1.Run
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if !attempt.Creatable(run) || slices.Contains(held, run.Pipeline) && a.Event.Cancelled(run.Pipeline) == nil {
			continue
		}
		if a.Waits.Of(v1alpha1.StepCreate+run.Name) == nil {
			fresh = append(fresh, run)
			continue
		}
		waiting = append(waiting, run)
	}
	return append(fresh, attempt.InTurn(true, waiting)...)
}

// judge turns an answer that is final into the run's refusal or result; every other error stays a
// wait.
func judge(a *attempt.Attempt, step string, run *v1alpha1.Run, err error) error {
	f := fault.Of(err)
	if f == nil {
		return nil
	}
	if before := a.Waits.Of(step); f.Reason == fault.ReasonDenialEchoesOutage && before != nil &&
		before.Reason == f.Reason && a.Clock.Since(before.Since.Time) > EchoLimit {
		f = f.Believe()
	}
	if f.Class == fault.Invalid {
		run.Refused = &v1alpha1.Refusal{Reason: f.Reason, Message: f.Advice()}
		return nil
	}
	if f.Reason == fault.ReasonInstallationGone && a.Waits.Hopeless(a.Waits.Of(step)) {
		f.Reason = attempt.ReasonGivenUp
	}
	if noPlace(f.Reason) ||
		slices.Contains([]string{attempt.ReasonSuperseded, attempt.ReasonCancelled, attempt.ReasonGivenUp}, f.Reason) {
		run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled, Reason: f.Reason, Message: f.Message}
		return nil
	}
	return err
}

// createRun creates the git-auth secret, then the PipelineRun. Both names are known, so a create
// that landed although its answer was lost is found again.
func (s *Step) createRun(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) error {
	if why := a.Event.Cancelled(run.Pipeline); why != nil {
		return s.cancelled(ctx, a, run, why)
	}
	if err := s.Quotas.Full(
		run.Namespace,
		run.Name,
		a.Clock.Now(),
	); err != nil { // thousands may wait for it: only who is tried asks Git
		return err
	}
	if err := s.giveUp(ctx, a, run); err != nil {
		return err
	}
	values, err := a.Kept.Values(ctx)
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

// unlessGone ends the wait for a namespace that took the Repository with it.
func unlessGone(ctx context.Context, a *attempt.Attempt, missing *fault.Error) error {
	if ref := a.Event.Spec.Repository; a.Git.RepositoryGone(ctx) {
		return fault.Operatorf(
			credentials.ReasonRepositoryGone,
			"Repository %s/%s is gone, and its namespace",
			ref.Namespace,
			ref.Name,
		)
	}
	return missing // whatever else: it is asked again then
}

func (s *Step) createWith(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, values map[string]string) error {
	manifest, err := a.Kept.Manifest(ctx, run.Name)
	if err != nil {
		return err
	}
	if manifest, err = plans.Reveal(manifest, values); err != nil {
		return err
	}
	created, err := s.create(ctx, a, run, manifest)
	if refused(err) {
		created, err = s.landed(ctx, manifest, err)
	}
	if err != nil {
		return err
	}
	run.UID = created.UID
	s.made(a, created)
	s.Metrics.Created(ctx)
	return nil
}

func (s *Step) create(
	ctx context.Context,
	a *attempt.Attempt,
	run *v1alpha1.Run,
	manifest *pipelinev1.PipelineRun,
) (*pipelinev1.PipelineRun, error) {
	if err := a.Record.Confirm(ctx); err != nil {
		return nil, err
	}
	if run.Secret != "" {
		if err := s.GitAuth.Ensure(ctx, a, run); err != nil {
			return nil, err
		}
	}
	if err := a.Record.Confirm(ctx); err != nil { // the token may have taken long
		return nil, err
	}
	created, err := s.Tekton.PipelineRuns(run.Namespace).Create(ctx, manifest, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return s.adopt(ctx, manifest)
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbCreate, err)
	}
	return created, nil
}

// adopt returns the PipelineRun of the planned name if it is ours: then an earlier create landed. A
// foreign one is left alone (C10).
func (s *Step) adopt(ctx context.Context, manifest *pipelinev1.PipelineRun) (*pipelinev1.PipelineRun, error) {
	found, err := s.Tekton.PipelineRuns(manifest.Namespace).Get(ctx, manifest.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fault.FromKube(
			fault.VerbRead,
			fmt.Errorf("reading PipelineRun %s/%s: %w", manifest.Namespace, manifest.Name, err),
		)
	}
	if found.Annotations[plumbline.RunKeyAnnotation] != manifest.Annotations[plumbline.RunKeyAnnotation] {
		return nil, fault.Operatorf(
			"ForeignPipelineRun",
			"PipelineRun %s/%s exists and is not this event's (annotation %s differs): delete or rename it",
			manifest.Namespace,
			manifest.Name,
			plumbline.RunKeyAnnotation,
		)
	}
	return found, nil
}

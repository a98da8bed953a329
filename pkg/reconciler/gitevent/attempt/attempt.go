// SPDX-License-Identifier: Apache-2.0

// Package attempt holds what the steps of one reconcile of one GitEvent share: the event, what the
// steps have learned, why steps wait, and the one writer of the status. State holds what outlives a
// reconcile.
package attempt

import (
	"context"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// Attempt is one reconcile of one event. A step changes only its own part of Event.Status.
type Attempt struct {
	// Event is the newest known version. The plan completes its spec; the completed spec is not
	// written back.
	Event  *v1alpha1.GitEvent
	Config *config.Config
	// Waits are why steps wait, and when they are retried.
	Waits *Waits
	// Record writes the status.
	Record *Record
	// Git is logged in on first use.
	Git *credentials.Session
	// StoredPlan is what was planned, read on first use.
	StoredPlan *plans.StoredPlan
	// Seen has the PipelineRuns that this reconcile has read, by name.
	Seen    map[string]*pipelinev1.PipelineRun
	Started time.Time
	Clock   clock.PassiveClock
	// Wake enqueues the event, in addition to what the reconcile returns.
	Wake func(after time.Duration)
}

// Events is the part of the GitEvents' client that is needed.
type Events interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*v1alpha1.GitEvent, error)
	UpdateStatus(ctx context.Context, event *v1alpha1.GitEvent, o metav1.UpdateOptions) (*v1alpha1.GitEvent, error)
}

// State is what all reconciles of a process share.
type State struct {
	Clock    clock.PassiveClock
	Events   Events
	Cache    *Cache
	Recorder record.EventRecorder
	Timers   *backoff.Timers
	Metrics  *metrics.Metrics
	// OperatorRetry is how long a fault waits that an operator must fix; 0 is fault.OperatorRetry.
	OperatorRetry time.Duration
	// Stored is called with each event whose status was written.
	Stored func(*v1alpha1.GitEvent)
	// Wake enqueues an event.
	Wake func(event string, after time.Duration)
	// Holds reports whether this process holds the lease of an event, as far as it knows; nil means
	// always.
	Holds func(event string) bool
}

// Start starts a reconcile of an event.
func (s *State) Start(
	ctx context.Context, version *Version, logins *credentials.Pool, plan *plans.StoredPlan,
) *Attempt {
	event := version.Event
	event.GetConditionSet().Manage(&event.Status).InitializeConditions()
	settings := config.FromContext(ctx)
	git := logins.Begin(event, settings)
	waits := &Waits{
		state:   s,
		event:   event,
		session: git,
		started: version.started,
		config:  settings,
		log:     logging.FromContext(ctx),
	}
	a := &Attempt{
		Event:      event,
		Config:     settings,
		Waits:      waits,
		Git:        git,
		StoredPlan: plan,
		Seen:       map[string]*pipelinev1.PipelineRun{},
		Started:    version.started,
		Clock:      s.Clock,
		Record: &Record{
			state:     s,
			event:     event,
			waits:     waits,
			received:  event.Spec.DeepCopy(),
			stored:    event.Status.DeepCopy(),
			confirmed: version.confirmed,
		},
		Wake: func(after time.Duration) { s.Wake(event.Name, after) },
	}
	a.pin()
	return a
}

// Release releases what the attempt has reserved.
func (a *Attempt) Release() {
	a.Git.End(a.Waits.tried, a.Waits.skipped)
	a.StoredPlan.Release()
}

// pin gives the event the commit, the ref and the project that its plan was made for.
func (a *Attempt) pin() {
	if !a.Planned() {
		return
	}
	spec, plan := &a.Event.Spec, a.Event.Status.Plan
	if spec.Comment != nil || spec.Incoming != nil {
		spec.SHA = plan.HeadSHA
	}
	if plan.Located != nil {
		spec.Locate(plan.Located)
	}
	if plan.Ref != "" {
		spec.BaseRef, spec.HeadRef = plan.Ref, plan.Ref
	}
}

// Restore discards all changes of the status that are not written.
func (a *Attempt) Restore() {
	a.Event.Status = *a.Record.stored.DeepCopy()
	a.StoredPlan.Forget()
}

// Planned reports whether the event has a plan.
func (a *Attempt) Planned() bool { return a.Event.Status.Plan != nil }

// Decided reports whether every part of the plan is decided.
func (a *Attempt) Decided() bool { return a.Event.Status.Plan.Decided() }

// Finished reports whether every run is refused, or has a result to which no log will be added.
func (a *Attempt) Finished() bool {
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if run.Refused == nil && run.Result == nil || run.Result != nil && run.Result.Log.Pending() {
			return false
		}
	}
	return true
}

// Manifest returns the PipelineRun of a run's current attempt as it is created.
func (a *Attempt) Manifest(ctx context.Context, run *v1alpha1.Run) (*pipelinev1.PipelineRun, error) {
	manifest, err := a.StoredPlan.Manifest(ctx, run.Key())
	if err != nil || run.Attempt() == 1 {
		return manifest, err
	}
	resources.ForAttempt(manifest, run, a.Config.Console.Links(*run).Run)
	return manifest, nil
}

// Desired returns what the Git service should show now.
func (a *Attempt) Desired() []status.Check {
	in := status.Input{Application: a.Config.ApplicationName, Event: a.Event}
	for _, run := range a.Event.Status.Runs {
		in.Runs = append(in.Runs, status.RunState{
			Run:           run,
			PipelineRun:   a.Seen[run.Name],
			Links:         a.Config.Console.Links(run),
			Wait:          a.Waits.Of(v1alpha1.StepCreate + run.Name),
			CancelRefused: a.Waits.Of(v1alpha1.StepCancel + run.Name),
		})
	}
	return status.Desired(in)
}

// Outstanding returns what the Git service should show and has not accepted.
func (a *Attempt) Outstanding() []status.Check {
	return status.Stale(a.Desired(), a.Event.Status.Checks)
}

// Accepted returns the record of a check, nil if nothing of it was sent or is about to be sent.
func (a *Attempt) Accepted(key string) *v1alpha1.Check { return checkOf(&a.Event.Status, key) }

func checkOf(s *v1alpha1.GitEventStatus, key string) *v1alpha1.Check {
	for i := range s.Checks {
		if s.Checks[i].Key == key {
			return &s.Checks[i]
		}
	}
	return nil
}

// Requeue is backoff.Requeue with this process's OperatorRetry.
func (s *State) Requeue(errs ...error) error {
	return backoff.RequeueAfter(s.operatorRetry(), errs...)
}

func (s *State) operatorRetry() time.Duration {
	if s.OperatorRetry > 0 {
		return s.OperatorRetry
	}
	return fault.OperatorRetry
}

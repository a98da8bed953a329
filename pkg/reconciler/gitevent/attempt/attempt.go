// SPDX-License-Identifier: Apache-2.0

// Package attempt is one reconcile of one event as its steps see it: the event, what was learnt on
// the way, why steps wait, and the one write of the status. What lives longer than a reconcile is
// on the Desk.
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
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// Attempt is one reconcile of one event. A step changes what is its own of Event.Status, and
// nothing else.
type Attempt struct {
	// Event is the newest version that is known. The plan completes its spec; that is not written
	// back.
	Event  *v1alpha1.GitEvent
	Config *config.Config
	// Waits are why steps are not done, and when they are tried again.
	Waits *Waits
	// Record writes the status.
	Record *Record
	// Git is logged in on first use.
	Git *credentials.Session
	// Kept is what was planned, read on first use.
	Kept *plans.Plan
	// Seen are the PipelineRuns that this reconcile has seen, by name.
	Seen  map[string]*pipelinev1.PipelineRun
	Began time.Time
	Clock clock.PassiveClock
	// Wake enqueues the event, beside whatever the reconcile returns.
	Wake func(after time.Duration)
}

// Events is what is asked of the GitEvents' client.
type Events interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*v1alpha1.GitEvent, error)
	UpdateStatus(ctx context.Context, event *v1alpha1.GitEvent, o metav1.UpdateOptions) (*v1alpha1.GitEvent, error)
}

// Desk is what one reconcile leaves to the next ones, of this event and of others.
type Desk struct {
	Clock    clock.PassiveClock
	Events   Events
	Known    *Known
	Recorder record.EventRecorder
	Timers   *backoff.Timers
	Metrics  *metrics.Metrics
	// OperatorRetry is how long a fault waits that an operator has to mend; 0 is
	// fault.OperatorRetry.
	OperatorRetry time.Duration
	// Recorded is told of each event whose status was stored.
	Recorded func(*v1alpha1.GitEvent)
	// Wake enqueues an event.
	Wake func(event string, after time.Duration)
	// Holds reports whether the lease of an event is this process's, as far as it knows; nil is
	// always.
	Holds func(event string) bool
}

// Begin is the beginning of a reconcile of an event.
func (d *Desk) Begin(ctx context.Context, version *Version, logins *credentials.Pool, plan *plans.Plan) *Attempt {
	event := version.Event
	event.GetConditionSet().Manage(&event.Status).InitializeConditions()
	settings := config.FromContext(ctx)
	git := logins.Begin(event, settings)
	waits := &Waits{
		desk:    d,
		event:   event,
		session: git,
		began:   version.began,
		config:  settings,
		log:     logging.FromContext(ctx),
	}
	a := &Attempt{
		Event:  event,
		Config: settings,
		Waits:  waits,
		Git:    git,
		Kept:   plan,
		Seen:   map[string]*pipelinev1.PipelineRun{},
		Began:  version.began,
		Clock:  d.Clock,
		Record: &Record{
			desk:      d,
			event:     event,
			waits:     waits,
			received:  event.Spec.DeepCopy(),
			stored:    event.Status.DeepCopy(),
			confirmed: version.confirmed,
		},
		Wake: func(after time.Duration) { d.Wake(event.Name, after) },
	}
	a.pin()
	return a
}

// End gives back what the attempt has taken.
func (a *Attempt) End() {
	a.Git.End(a.Waits.tried, a.Waits.skipped)
	a.Kept.Release()
}

// pin makes the commit and the ref that the plan was made for the event's.
func (a *Attempt) pin() {
	if !a.Planned() {
		return
	}
	spec, plan := &a.Event.Spec, a.Event.Status.Plan
	if spec.Comment != nil {
		spec.SHA = plan.HeadSHA
	}
	if plan.Ref != "" {
		spec.BaseRef, spec.HeadRef = plan.Ref, plan.Ref
	}
}

// Restore takes back what is not recorded.
func (a *Attempt) Restore() {
	a.Event.Status = *a.Record.stored.DeepCopy()
	a.Kept.Forget()
}

// Planned reports whether anything is written down; Decided, whether nothing of it is open.
func (a *Attempt) Planned() bool { return a.Event.Status.Plan != nil }

// Decided reports whether nothing of the plan is open.
func (a *Attempt) Decided() bool { return a.Event.Status.Plan.Decided() }

// Over reports whether every run is refused or has ended.
func (a *Attempt) Over() bool {
	for i := range a.Event.Status.Runs {
		if run := &a.Event.Status.Runs[i]; run.Refused == nil && run.Result == nil {
			return false
		}
	}
	return true
}

// Creatable reports whether a run is still to be created.
func Creatable(run *v1alpha1.Run) bool { return run.Creatable() }

// Desired is what the Git service should show now.
func (a *Attempt) Desired() []status.Check {
	in := status.Input{Application: a.Config.ApplicationName, Event: a.Event}
	for _, run := range a.Event.Status.Runs {
		in.Runs = append(in.Runs, status.RunState{
			Run:         run,
			PipelineRun: a.Seen[run.Name],
			Links:       a.Config.Console.Links(run.Namespace, run.Name),
			Wait:        a.Waits.Of(v1alpha1.StepCreate + run.Name),
			Refused:     a.Waits.Of(v1alpha1.StepCancel + run.Name),
		})
	}
	return status.Desired(in)
}

// Outstanding is what the Git service should show minus what it has accepted.
func (a *Attempt) Outstanding() []status.Check {
	return status.Stale(a.Desired(), a.Event.Status.Checks)
}

// Accepted returns the record of a check, nil if nothing of it was sent or is about to be.
func (a *Attempt) Accepted(key string) *v1alpha1.Check { return checkOf(&a.Event.Status, key) }

func checkOf(s *v1alpha1.GitEventStatus, key string) *v1alpha1.Check {
	for i := range s.Checks {
		if s.Checks[i].Key == key {
			return &s.Checks[i]
		}
	}
	return nil
}

// Requeue is backoff.Requeue with this process's wait for operators.
func (d *Desk) Requeue(errs ...error) error {
	return backoff.RequeueAfter(d.operatorRetry(), errs...)
}

func (d *Desk) operatorRetry() time.Duration {
	if d.OperatorRetry > 0 {
		return d.OperatorRetry
	}
	return fault.OperatorRetry
}

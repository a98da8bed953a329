// SPDX-License-Identifier: Apache-2.0

// Package gitevent carries each GitEvent through its steps, and may be killed between any two
// calls. What was done is in the status; what is repeated has a deterministic name. This package
// has the order of the steps. Each step is a package of its own.
package gitevent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/fairqueue"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/settle"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

const (
	// reconcileDeadline bounds one reconcile: knative sets no limit. It is longer than the 30 s
	// that one call to a Git service may take, and shorter than the pod's grace period, so that a
	// call in flight at SIGTERM finishes by itself.
	reconcileDeadline = 50 * time.Second
	// afterReport is the part of that deadline that is reserved for the steps after the report,
	// even if calls of plan, create, observe and report hang: a token must not expire because of
	// them. The renewal may take 10 s (renew.Limit).
	afterReport = 15 * time.Second
)

// Reconciler is the only writer of GitEvent.status. It implements controller.Reconciler itself: see
// docs/adr/0002.
type Reconciler struct {
	reconciler.LeaderAwareFuncs
	cluster deps.Cluster
	options deps.Options
	process deps.Process

	state       *attempt.State
	credentials *credentials.Pool
	queue       *fairqueue.Queue
	steps       *Steps
	store       *plans.Store
}

var _ controller.Reconciler = (*Reconciler)(nil)

// New returns a Reconciler.
func New(c deps.Cluster, o deps.Options, p deps.Process) *Reconciler {
	r := &Reconciler{cluster: c, options: o, process: p}
	wake := func(event string, after time.Duration) { r.process.Wake(event, after) }
	m, known, leads := metrics.New(), &attempt.Cache{}, &settle.Leadership{}
	leads.Start(c.Clock.Now())
	r.steps = newSteps(c, o, shared{
		metrics: m, leadership: leads, wake: wake,
		inherited: func(event *v1alpha1.GitEvent) bool { return leads.Inherited(event) && !known.Exclusive(event.Name) },
	})
	r.state = &attempt.State{
		Clock:         c.Clock,
		Events:        c.Plumbline.GitEvents(o.Namespace),
		Cache:         known,
		Recorder:      c.Recorder,
		Timers:        backoff.New(),
		Metrics:       m,
		OperatorRetry: o.Times.OperatorRetry,
		Stored:        r.steps.Create.Created.Stored,
		Wake:          wake,
		Holds:         p.Holds,
	}
	r.store = &plans.Store{
		Events:   c.Plumbline.GitEvents(o.Namespace),
		Payloads: c.Plumbline.EventPayloads(o.Namespace),
		Secrets:  c.Kube.Secrets(o.Namespace),
		Memory:   memory.NewBudget(c.Clock.Now, m.MemoryFull, wake),
		Budget:   o.Budget,
		Changed:  known.Forget,
		Rate:     plans.NewRate(),
	}
	r.share(fairqueue.New(fairqueue.Options{Workers: o.Workers, Now: c.Clock.Now, Full: m.NoSlot, Wake: wake}))
	r.PromoteFunc, r.DemoteFunc = r.promote, func(reconciler.Bucket) { r.forget() }
	return r
}

// share sets the queue in which events wait for workers and Git services.
func (r *Reconciler) share(queue *fairqueue.Queue) {
	c, o := r.cluster, r.options
	r.queue = queue
	r.credentials = credentials.New(credentials.Options{
		Namespace: o.Namespace, AppSecret: o.AppSecret, GlobalRepository: o.GlobalRepository, Providers: o.Providers,
		Kube: c.Kube, Cache: c.Repositories, Repositories: c.PaC, Clock: c.Clock, Wake: r.state.Wake,
		Calls: credentials.Calls{
			Acquire: queue.Acquire,
			Observe: func(event *v1alpha1.GitEvent, a provider.CallResult) {
				queue.Observe(fairqueue.RequestOf(event, c.Clock.Now()), fairqueue.Answer(a))
			},
		},
	})
}

// promote enqueues what a new leader must reconcile: the unsettled events.
func (r *Reconciler) promote(bucket reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
	r.steps.Settle.Leadership.Start(r.cluster.Clock.Now())
	r.forget()
	events, err := r.open()
	if err != nil {
		return err
	}
	for _, event := range events {
		r.state.Timers.Forget(event.Name) // from before another process led; an event of another bucket loses its timers, too
		enqueue(bucket, types.NamespacedName{Namespace: event.Namespace, Name: event.Name})
	}
	return nil
}

// forget drops what is true only while no other process leads.
func (r *Reconciler) forget() {
	r.state.Cache.Clear()
	r.steps.Renew.GitAuth.Clear()
	r.steps.Plan.CrashLoop.Forget()
	r.steps.Logs.Clear()
}

func (r *Reconciler) open() ([]*v1alpha1.GitEvent, error) {
	return r.cluster.Open.GitEvents(r.options.Namespace).List(labels.Everything())
}

// unsettled returns an event from the lister. A key that the lister does not have needs nothing.
func (r *Reconciler) unsettled(name string) (*v1alpha1.GitEvent, error) {
	return r.cluster.Open.GitEvents(r.options.Namespace).Get(name)
}

// Reconcile does what can be done for one event now. knative logs and requeues the error that it
// returns.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	err := r.reconcileKey(ctx, key)
	_, event, _ := cache.SplitMetaNamespaceKey(key) // reconcileKey ignores an invalid key
	if after, wanted := r.state.RequeueAfter(event, err); wanted {
		r.process.Wake(event, after)
	}
	return err
}

func (r *Reconciler) reconcileKey(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, reconcileDeadline)
	defer cancel()

	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil // an invalid key stays invalid: nothing to requeue
	}
	if !r.IsLeaderFor(types.NamespacedName{Namespace: namespace, Name: name}) {
		r.leaveQueues(name)
		return controller.NewSkipKey(key) // the leader's promotion enqueues it there
	}
	ctx = r.process.Settings.ToContext(ctx)
	open, err := r.unsettled(name)
	if err != nil { // the only error of a lister is that it does not have the event
		r.steps.Create.Created.Forget(name)
		r.steps.Logs.Forget(name)
		r.state.Cache.Forget(name)
		r.leaveQueues(name)
		return nil // settled, or not listed yet: then the informer's add enqueues it
	}
	fresh := len(open.Status.Conditions) == 0 // nothing is recorded yet, and nothing can be done without the Git service
	release, err := r.queue.AcquireWorker(fairqueue.RequestOf(open, r.cluster.Clock.Now()), fresh)
	if err != nil {
		return r.state.Requeue(err)
	}
	defer release()
	version, err := r.state.Read(ctx, open)
	if version == nil || err != nil {
		return r.state.Requeue(err)
	}
	plan := r.store.Of(version.Event)
	return r.guarded(memory.WithReserve(ctx, plan.ReserveAnswers), r.state.Start(ctx, version, r.credentials, plan))
}

// leaveQueues removes an event from the queues that it waits in: it is settled, or another process
// leads it.
func (r *Reconciler) leaveQueues(event string) {
	r.queue.Remove(event)
	r.store.Memory.Remove(event)
}

// guarded turns a panic into a long wait: one event that crashes the controller must not delay the
// others (B16). It does not catch panics of other goroutines: code that starts one must hand its
// panic over.
func (r *Reconciler) guarded(ctx context.Context, a *attempt.Attempt) (err error) {
	defer a.Release()
	defer func() {
		if cause := recover(); cause != nil {
			err = r.state.Requeue(a.Waits.Update(v1alpha1.StepReconcile, a.Panicked(ctx, cause)), a.Record.Write(ctx))
		}
	}()
	return r.reconcile(ctx, a)
}

// reconcile has the order of the steps. A step that fails does not stop those that do not need it.
// The status is written here at the end. Steps write it earlier if something must be recorded
// before the next call.
func (r *Reconciler) reconcile(ctx context.Context, a *attempt.Attempt) error {
	a.Waits.Clear(v1alpha1.StepReconcile)
	a.Record.AddIntents = func() func() { return r.steps.Report.RecordIntents(a) }
	faults := r.untilReported(ctx, a)
	if !a.Planned() {
		a.UpdateConditions()
		return r.state.Requeue(append(faults, a.Record.Write(ctx))...)
	}
	a.UpdateConditions()
	faults = append(faults, a.Record.WriteCreated(ctx)) // before calls that may hang
	faults = append(faults, a.Waits.Update(v1alpha1.StepRenew, r.steps.Renew.Do(ctx, a)))
	unpatched := a.Waits.Run(v1alpha1.StepAnnotate, func() error { return r.steps.Annotate.Do(ctx, a) })
	faults = append(faults, r.steps.Report.UntilRecheck(a))
	a.UpdateConditions()
	due, err := r.steps.Settle.Do(ctx, a, r.state.Requeue(faults...) == nil)
	faults = append(faults, unpatched)
	switch {
	case err != nil:
		return r.state.Requeue(err, a.Record.Write(ctx)) // what was done stays done although it could not be tidied up
	case due:
		return nil
	}
	// Without a fault the PipelineRun's informer wakes the event.
	return r.state.Requeue(append(faults, a.Record.Write(ctx))...)
}

// untilReported runs the steps whose calls may hang.
func (r *Reconciler) untilReported(ctx context.Context, a *attempt.Attempt) []error {
	if a.Planned() { // before that no run has a token
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, reconcileDeadline-afterReport)
		defer cancel()
	}
	var faults []error
	if !a.Decided() {
		faults = append(faults, r.plan(ctx, a))
	}
	if !a.Planned() {
		return faults
	}
	held, err := r.steps.Cancel.Newer.ApplyNewer(ctx, a)
	faults = append(faults, err)
	faults = append(faults, r.steps.Create.Do(ctx, a, held)...)
	faults = append(faults, r.steps.Observe.Do(ctx, a))
	faults = append(faults, r.steps.Cancel.Do(ctx, a))
	r.steps.Logs.Do(ctx, a)
	faults = append(faults, a.Waits.Update(v1alpha1.StepReport, a.Waits.SlowDown(v1alpha1.StepReport,
		a.Waits.IfDue(v1alpha1.StepReport, func() error { return r.steps.Report.Do(ctx, a) }))))
	faults = append(faults, a.Waits.Run(v1alpha1.StepReply, func() error { return r.steps.Report.Reply(ctx, a) }))
	faults = append(faults, a.Waits.Run(v1alpha1.StepSources, func() error { return r.steps.Report.SendSources(ctx, a) }))
	return append(faults,
		a.Waits.Run(v1alpha1.StepValidation, func() error { return r.steps.Report.Validation(ctx, a) }),
		a.Waits.Run(v1alpha1.StepFailures, func() error { return r.steps.Report.Failures(ctx, a) }))
}

// plan plans the event. It ends the planning of an event that is cancelled, or for which waiting is
// pointless.
func (r *Reconciler) plan(ctx context.Context, a *attempt.Attempt) error {
	if why := a.Event.Cancelled(""); why != nil { // whatever it waits for
		return a.Waits.Update(v1alpha1.StepPlan, r.steps.Plan.Cancel(ctx, a, why))
	}
	err := a.Waits.Update(
		v1alpha1.StepPlan,
		a.Waits.SlowDown(v1alpha1.StepPlan, a.Waits.IfDue(v1alpha1.StepPlan, func() error {
			return a.Waits.WithBackoff(backoff.Step{Name: v1alpha1.StepPlan}, func() error {
				return a.Traced(ctx, v1alpha1.StepPlan, func(ctx context.Context) error { return r.steps.Plan.Do(ctx, a) })
			})
		})),
	)
	wait := a.Waits.Of(v1alpha1.StepPlan)
	overdue := err != nil && !attempt.Skipped(err) && a.Waits.TooOld(wait) && r.steps.Plan.Refused(a) &&
		r.steps.Plan.Serves(ctx, a)
	if overdue || a.Waits.IsCurrent(wait) && a.Waits.ShouldGiveUp(wait) {
		return r.steps.Plan.GiveUp(ctx, a, wait)
	}
	return err
}

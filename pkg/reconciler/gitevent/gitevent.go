// SPDX-License-Identifier: Apache-2.0

// Package gitevent carries each GitEvent through its steps, and may be killed between any two
// calls: what was done is in the status, what is repeated has a deterministic name. Here is their
// order; each step is a package of its own.
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
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/clients"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

const (
	// reconcileDeadline bounds one reconcile: knative gives it none. It is longer than the 30 s one
	// call to a Git service may take and shorter than the pod's grace period, so that a call in
	// flight at SIGTERM ends by itself.
	reconcileDeadline = 50 * time.Second
	// afterReport is what plan, create, observe and report leave of that deadline, however many of
	// their calls hang: a token must not expire because of them. The renewal may take 10 s
	// (renew.Limit).
	afterReport = 15 * time.Second
)

// Reconciler is the only writer of GitEvent.status. It implements controller.Reconciler itself: see
// docs/adr/0002.
type Reconciler struct {
	reconciler.LeaderAwareFuncs
	cluster clients.Cluster
	options clients.Options

	desk        *attempt.Desk
	credentials *credentials.Pool
	queue       *fairqueue.Queue
	steps       *Steps
	store       *plans.Store
	// Settings adds the configuration to a context.
	Settings interface {
		ToContext(ctx context.Context) context.Context
	}
	// Wake enqueues an event, beside whatever a reconcile returns.
	Wake func(event string, after time.Duration)
}

var _ controller.Reconciler = (*Reconciler)(nil)

// New returns a Reconciler that still needs Settings and Wake.
func New(c clients.Cluster, o clients.Options) *Reconciler {
	m, known := metrics.New(), &attempt.Known{}
	r := &Reconciler{cluster: c, options: o, steps: NewSteps(c, o, m)}
	r.desk = &attempt.Desk{
		Clock:         c.Clock,
		Events:        c.Plumbline.GitEvents(o.Namespace),
		Known:         known,
		Recorder:      c.Recorder,
		Timers:        backoff.New(),
		Metrics:       m,
		OperatorRetry: o.Times.OperatorRetry,
		Recorded:      r.steps.Create.Created.Stored,
		Wake:          func(event string, after time.Duration) { r.Wake(event, after) },
	}
	r.steps.Report.Strangers.Wake = r.desk.Wake
	r.store = &plans.Store{
		Events: c.Plumbline.GitEvents(
			o.Namespace,
		),
		Payloads: c.Plumbline.EventPayloads(o.Namespace),
		Secrets:  c.Kube.Secrets(o.Namespace),
		Memory: memory.NewBudget(
			c.Clock.Now,
			m.NoRoom,
			r.desk.Wake,
		),
		Budget:  o.Budget,
		Changed: known.Forget,
		Rate:    plans.NewRate(),
	}
	r.share(fairqueue.New(fairqueue.Options{Workers: o.Workers, Now: c.Clock.Now, Full: m.NoTurn, Wake: r.desk.Wake}))
	r.steps.Plan.Beginnings.Inherited = func(event *v1alpha1.GitEvent) bool {
		return r.steps.Settle.Leads.Inherited(event) && !known.First(event.Name)
	}
	r.steps.Settle.Leads.Take(c.Clock.Now())
	r.PromoteFunc, r.DemoteFunc = r.promote, func(reconciler.Bucket) { r.forget() }
	return r
}

// UnderLeases makes each call of a reconcile that others may notice depend on the event's lease:
// holds reports whether it is this process's. Without it every lease is.
func (r *Reconciler) UnderLeases(holds func(event string) bool) { r.desk.Holds = holds }

// share has events wait in the queue for workers and Git services.
func (r *Reconciler) share(queue *fairqueue.Queue) {
	c, o := r.cluster, r.options
	r.queue = queue
	r.credentials = credentials.New(credentials.Options{
		Namespace: o.Namespace, AppSecret: o.AppSecret, GlobalRepository: o.GlobalRepository, Providers: o.Providers,
		Kube: c.Kube, Cache: c.Repositories, Repositories: c.PaC, Clock: c.Clock, Wake: r.desk.Wake,
		Calls: credentials.Calls{
			Acquire: queue.Acquire,
			Observe: func(event *v1alpha1.GitEvent, a provider.Answered) {
				queue.Observe(fairqueue.RequestOf(event, c.Clock.Now()), fairqueue.Answer(a))
			},
		},
	})
}

// promote enqueues what a new leader has to look at: the open events.
func (r *Reconciler) promote(bucket reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
	r.steps.Settle.Leads.Take(r.cluster.Clock.Now())
	r.forget()
	events, err := r.open()
	if err != nil {
		return err
	}
	for _, event := range events {
		r.desk.Timers.Forget(event.Name) // from before another process led; of another bucket's it costs an attempt
		enqueue(bucket, types.NamespacedName{Namespace: event.Namespace, Name: event.Name})
	}
	return nil
}

// forget drops what is true only while no other process leads.
func (r *Reconciler) forget() {
	r.desk.Known.Clear()
	r.steps.Renew.GitAuth.Clear()
	r.steps.Plan.Beginnings.Forget()
}

func (r *Reconciler) open() ([]*v1alpha1.GitEvent, error) {
	return r.cluster.Open.GitEvents(r.options.Namespace).List(labels.Everything())
}

// unsettled is what the lister holds; a key it does not know needs nothing.
func (r *Reconciler) unsettled(name string) (*v1alpha1.GitEvent, error) {
	return r.cluster.Open.GitEvents(r.options.Namespace).Get(name)
}

// Reconcile does what can be done for one event now. The error it returns is logged and requeued by
// knative.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	err := r.reconcileKey(ctx, key)
	_, event, _ := cache.SplitMetaNamespaceKey(key) // one that cannot be split does not fail
	if after, wanted := r.desk.ComeBack(event, err); wanted {
		r.Wake(event, after)
	}
	return err
}

func (r *Reconciler) reconcileKey(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, reconcileDeadline)
	defer cancel()

	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil // a key that is none cannot become one: nothing to requeue
	}
	if !r.IsLeaderFor(types.NamespacedName{Namespace: namespace, Name: name}) {
		r.leave(name)
		return controller.NewSkipKey(key) // the leader's promotion enqueues it there
	}
	ctx = r.Settings.ToContext(ctx)
	open, err := r.unsettled(name)
	if err != nil { // a lister knows no other error than that it has none
		r.steps.Create.Created.Forget(name)
		r.desk.Known.Forget(name)
		r.leave(name)
		return nil // settled, or not listed yet: then the informer's add enqueues it
	}
	fresh := len(open.Status.Conditions) == 0 // nothing is recorded of it yet, and nothing can be without the Git service
	release, err := r.queue.AcquireWorker(fairqueue.RequestOf(open, r.cluster.Clock.Now()), fresh)
	if err != nil {
		return r.desk.Requeue(err)
	}
	defer release()
	version, err := r.desk.Read(ctx, open)
	if version == nil || err != nil {
		return r.desk.Requeue(err)
	}
	plan := r.store.Of(version.Event)
	return r.guarded(memory.WithReserve(ctx, plan.HoldAnswers), r.desk.Begin(ctx, version, r.credentials, plan))
}

// leave gives up what an event waits for in a line: it is settled, or another process leads it.
func (r *Reconciler) leave(event string) {
	r.queue.Remove(event)
	r.store.Memory.Remove(event)
}

// guarded turns a panic into a long wait: one poisonous event must not take the others' controller
// down (B16). The ones of other goroutines are not caught: whoever starts one below has to hand its
// panic over.
func (r *Reconciler) guarded(ctx context.Context, a *attempt.Attempt) (err error) {
	defer a.End()
	defer func() {
		if cause := recover(); cause != nil {
			err = r.desk.Requeue(a.Waits.Settle(v1alpha1.StepReconcile, a.Panicked(ctx, cause)), a.Record.Write(ctx))
		}
	}()
	return r.reconcile(ctx, a)
}

// reconcile is the order of the steps. One that fails does not stop those that do not need it. The
// status is written here at the end; the steps before write it earlier where something must be
// recorded before the next call.
func (r *Reconciler) reconcile(ctx context.Context, a *attempt.Attempt) error {
	a.Waits.Clear(v1alpha1.StepReconcile)
	a.Record.Announce = func() func() { return r.steps.Report.Announce(a) }
	faults := r.untilReported(ctx, a)
	if !a.Planned() {
		a.Conclude()
		return r.desk.Requeue(append(faults, a.Record.Write(ctx))...)
	}
	a.Conclude()
	faults = append(faults, a.Record.WriteMade(ctx, 0)) // before calls that may hang
	faults = append(faults, a.Waits.Settle(v1alpha1.StepRenew, r.steps.Renew.Do(ctx, a)))
	unpatched := a.Waits.Step(v1alpha1.StepAnnotate, func() error { return r.steps.Annotate.Do(ctx, a) })
	faults = append(faults, r.steps.Report.UntilRecheck(a))
	a.Conclude()
	due, err := r.steps.Settle.Do(ctx, a, r.desk.Requeue(faults...) == nil)
	faults = append(faults, unpatched)
	switch {
	case err != nil:
		return r.desk.Requeue(err, a.Record.Write(ctx)) // what was done stays done although it could not be tidied up
	case due:
		return nil
	}
	return r.desk.Requeue(append(faults, a.Record.Write(ctx))...) // without a fault the PipelineRun's informer wakes us
}

// untilReported are the steps whose calls may hang.
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
	held, err := r.steps.Cancel.Newer.Heed(ctx, a)
	faults = append(faults, err)
	faults = append(faults, r.steps.Create.Do(ctx, a, held)...)
	faults = append(faults, r.steps.Observe.Do(ctx, a))
	faults = append(faults, r.steps.Cancel.Do(ctx, a))
	faults = append(faults, a.Waits.Settle(v1alpha1.StepReport, a.Waits.Slowed(v1alpha1.StepReport,
		a.Waits.Due(v1alpha1.StepReport, func() error { return r.steps.Report.Do(ctx, a) }))))
	return append(faults, a.Waits.Step(v1alpha1.StepReply, func() error { return r.steps.Report.Reply(ctx, a) }))
}

// plan ends the planning of an event that is cancelled, or that waits in vain.
func (r *Reconciler) plan(ctx context.Context, a *attempt.Attempt) error {
	if why := a.Event.Cancelled(""); why != nil { // whatever it waits for
		return a.Waits.Settle(v1alpha1.StepPlan, r.steps.Plan.Cancel(ctx, a, why))
	}
	err := a.Waits.Settle(
		v1alpha1.StepPlan,
		a.Waits.Slowed(v1alpha1.StepPlan, a.Waits.Due(v1alpha1.StepPlan, func() error {
			return a.Waits.Try(backoff.Step{Name: v1alpha1.StepPlan}, func() error {
				return a.Traced(ctx, v1alpha1.StepPlan, func(ctx context.Context) error { return r.steps.Plan.Do(ctx, a) })
			})
		})),
	)
	wait := a.Waits.Of(v1alpha1.StepPlan)
	overdue := err != nil && !attempt.Skipped(err) && a.Waits.Overdue(wait) && r.steps.Plan.Refused(a) &&
		r.steps.Plan.Serves(ctx, a)
	if overdue || a.Waits.Stands(wait) && a.Waits.Hopeless(wait) {
		return r.steps.Plan.GiveUp(ctx, a, wait)
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"time"

	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/creations"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/retry"
	"github.com/plumbline-ci/plumbline/pkg/turns"
)

// reconcileDeadline bounds one reconcile: knative gives it none. It is longer than the 30 s one call to a Git service
// may take and shorter than the pod's grace period, so that a call in flight at SIGTERM ends by itself.
const reconcileDeadline = 50 * time.Second

// afterReport is what plan, create, observe and report leave of that deadline, however many of their calls hang: a token must
// not expire because of them.
const afterReport = renewLimit + 5*time.Second

// Reconciler is the only writer of GitEvent.status. It implements controller.Reconciler itself: see docs/adr/0002.
type Reconciler struct {
	reconciler.LeaderAwareFuncs
	Options

	open        listers.GitEventNamespaceLister
	events      plumblineclient.GitEventInterface
	payloads    plumblineclient.EventPayloadInterface
	runs        cache.KeyListerGetter
	tekton      tektonv1.TektonV1Interface
	kube        corev1.CoreV1Interface
	settings    *config.Store
	clock       clock.PassiveClock
	recorder    record.EventRecorder
	metrics     *metrics
	turns       *turns.Turns
	credentials *credentials.Keeper
	retries     *retry.Timers
	misses      misses
	created     creations.Memory
	leads       tenure
	wake        func(event string, after time.Duration) // enqueues, beside whatever the reconcile returns
}

var _ controller.Reconciler = (*Reconciler)(nil)

// Reconcile does what can be done for one event now. The error it returns is logged and requeued by knative.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	err := r.reconcileKey(ctx, key)
	_, event, _ := cache.SplitMetaNamespaceKey(key) // one that cannot be split does not fail
	if after, wanted := r.comeBack(event, err); wanted {
		r.wake(event, after)
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
		return controller.NewSkipKey(key) // the leader's promotion enqueues it there
	}
	ctx = r.settings.ToContext(ctx)
	if _, err := r.unsettled(name); apierrors.IsNotFound(err) {
		r.created.Forget(name)
		return nil // settled, or not listed yet: then the informer's add enqueues it
	}
	asked := r.clock.Now()
	event, err := r.readEvent(ctx, name)
	if err != nil {
		return r.requeue(err)
	}
	if event == nil || event.Settled() || !event.DeletionTimestamp.IsZero() {
		return nil
	}
	return r.guarded(ctx, r.begin(ctx, event, asked))
}

// readEvent returns the event as it is now, nil if it is gone. It is tried whenever something wakes the event.
func (r *Reconciler) readEvent(ctx context.Context, name string) (*v1alpha1.GitEvent, error) {
	event, err := r.events.Get(ctx, name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil, nil
	}
	if err != nil {
		err = fault.FromKube(fault.VerbRead, fmt.Errorf("reading GitEvent %s: %w", name, err))
	}
	r.retries.Note(name, retry.Step{Name: stepRead}, err, r.clock.Now())
	return event, err
}

// guarded turns a panic into a long wait: one poisonous event must not take the others' controller down (B16). The ones
// of other goroutines are not caught: whoever starts one below has to hand its panic over.
func (r *Reconciler) guarded(ctx context.Context, w *work) (err error) {
	defer w.end()
	defer func() {
		if cause := recover(); cause != nil {
			err = r.requeue(w.settle(stepReconcile, w.panicked(ctx, cause)), w.record(ctx))
		}
	}()
	return r.reconcile(ctx, w)
}

// reconcile runs the steps in order. Steps that fail do not stop the ones that do not need them.
func (r *Reconciler) reconcile(ctx context.Context, w *work) error {
	w.clear(stepReconcile)
	faults := r.untilReported(ctx, w)
	if !w.planned() {
		w.conclude()
		return r.requeue(append(faults, w.record(ctx))...)
	}
	faults = append(faults, w.recordMade(ctx, 0)) // the report may not have come to it
	faults = append(faults, w.settle(stepRenew, r.renew(ctx, w)))
	faults = append(faults, w.settle(stepAnnotate, w.due(stepAnnotate, func() error { return r.annotate(ctx, w) })))
	faults = append(faults, w.untilRecheck())
	w.conclude()
	w.wakeToRenew()
	if w.unreportable() {
		return r.drop(ctx, w)
	}
	if err := r.requeue(faults...); err != nil {
		return r.requeue(append(faults, w.record(ctx))...)
	}
	if w.finished() {
		if err := r.finish(ctx, w); err != nil {
			return r.requeue(err, w.record(ctx)) // what was done stays done although it could not be tidied up
		}
		return nil
	}
	return r.requeue(w.record(ctx)) // the PipelineRun's informer wakes us
}

func (r *Reconciler) untilReported(ctx context.Context, w *work) []error {
	if w.planned() { // before that no run has a token
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, reconcileDeadline-afterReport)
		defer cancel()
	}
	var faults []error
	if !w.decided() {
		err := w.settle(stepPlan, w.slowed(stepPlan, w.due(stepPlan, func() error {
			return w.try(retry.Step{Name: stepPlan}, func() error {
				return w.traced(ctx, stepPlan, func(ctx context.Context) error { return r.planOrPark(ctx, w) })
			})
		})))
		if wait := w.wait(stepPlan); w.stands(wait) && w.hopeless(wait) {
			err = w.refuseToWait(ctx, wait)
		}
		faults = append(faults, err)
	}
	if !w.planned() {
		return faults
	}
	faults = append(faults, r.create(ctx, w)...)
	faults = append(faults, r.observe(ctx, w))
	return append(faults, w.settle(stepReport, w.slowed(stepReport, w.due(stepReport, func() error { return r.report(ctx, w) }))))
}

// requeue is fault.Requeue with this process's wait for operators.
func (r *Reconciler) requeue(errs ...error) error {
	return fault.RequeueAfter(r.operatorRetry(), errs...)
}

func (o *Options) operatorRetry() time.Duration {
	if o.OperatorRetry > 0 {
		return o.OperatorRetry
	}
	return fault.OperatorRetry
}

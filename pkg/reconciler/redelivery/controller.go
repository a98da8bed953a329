// SPDX-License-Identifier: Apache-2.0

package redelivery

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/runtime/leaderelection"
	"github.com/plumbline-ci/plumbline/pkg/store/signal"
)

// Setup is what the controller of a source needs.
type Setup struct {
	// Name is the name of the workqueue, of its metrics and of its leases.
	Name string
	// Namespace is Plumbline's own.
	Namespace string
	// Only are the keys, if they never change.
	Only []types.NamespacedName
	// Concurrency is the number of workers.
	Concurrency int
	// Timeout ends one step.
	Timeout time.Duration
}

// NewImpl returns the controller of a source. It reconciles all keys when a receiver signals.
func NewImpl(ctx context.Context, s Setup, kube kubernetes.Interface, source Source) *controller.Impl {
	logger := logging.FromContext(ctx).Named(s.Name)
	r := NewReconciler(source, clock.RealClock{}, s.Timeout)
	if err := leaderelection.Count(&r.LeaderAwareFuncs, s.Name); err != nil {
		logger.Errorw("Making metrics; some will be missing", "error", err)
	}
	queue := leaderelection.NewLeasedReconciler(ctx, r, s.Name, s.Only...)
	impl := controller.NewContext(ctx, queue,
		controller.ControllerOptions{WorkQueueName: s.Name, Logger: logger, Concurrency: s.Concurrency})
	queue.Enqueue = impl.MaybeEnqueueBucketKey
	// The start does not wait for the watch: without it each log is still read every few minutes.
	if err := signal.Watch(ctx, kube, s.Namespace, signal.Asks, func(cm *corev1.ConfigMap) {
		if !signal.Asked(cm) {
			return
		}
		after := r.Signal()
		for _, key := range source.Keys() {
			impl.EnqueueKeyAfter(key, after)
		}
	}); err != nil {
		logger.Fatalw("Watching the signals of receivers", "error", err)
	}
	return impl
}

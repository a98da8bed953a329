// SPDX-License-Identifier: Apache-2.0

package redelivery

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
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
	queue := leaderelection.NewQueue(ctx, r, s.Name, s.Only...)
	impl := controller.NewContext(
		ctx,
		queue,
		controller.ControllerOptions{WorkQueueName: s.Name, Logger: logger, Concurrency: s.Concurrency},
	)
	queue.Enqueue = impl.MaybeEnqueueBucketKey
	if err := watchSignal(ctx, kube, s.Namespace, func() {
		after := r.Signal()
		for _, key := range source.Keys() {
			impl.EnqueueKeyAfter(key, after)
		}
	}); err != nil {
		logger.Fatalw("Watching the signals of receivers", "error", err)
	}
	return impl
}

// Client returns a client with a rate limit of its own, so that it delays no call for an event. Its
// user agent tells its reads of Secrets from those for events. A qps of 0 is client-go's default.
func Client(ctx context.Context, name string, qps int) kubernetes.Interface {
	own := rest.CopyConfig(injection.GetConfig(ctx))
	own.UserAgent, own.QPS, own.Burst = "plumbline-controller/"+name, float32(qps), qps
	return kubernetes.NewForConfigOrDie(own)
}

// watchSignal calls do when a receiver signals. The start does not wait for the watch: without it
// each log is still read every few minutes.
func watchSignal(ctx context.Context, kube kubernetes.Interface, namespace string, do func()) error {
	one := cache.NewListWatchFromClient(
		kube.CoreV1().RESTClient(),
		"configmaps",
		namespace,
		fields.OneTermEqualSelector("metadata.name", signal.Asks),
	)
	informer := cache.NewSharedInformer(one, &corev1.ConfigMap{}, 0)
	changed := func(object any) {
		if cm, ok := object.(*corev1.ConfigMap); ok && signal.Asked(cm) {
			do()
		}
	}
	if _, err := informer.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }},
	); err != nil {
		return err
	}
	go informer.Run(ctx.Done())
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"go.opentelemetry.io/otel"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/injection/client"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/runtime/leaderelection"
	"github.com/plumbline-ci/plumbline/pkg/runtime/openshift"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

const (
	// queueName names the workqueue, its metrics and its leases.
	queueName = "sweep"
	// key is the only one of the queue.
	key = "sweep"
)

// Options are what cmd/controller decides.
type Options struct {
	// Namespace is Plumbline's own.
	Namespace string
	// Events is the watch of unsettled events, which others start.
	Events *gitevents.Watch
	// Closer closes the checks of PipelineRuns without an event.
	Closer Closer
	// OpenShift finds the cluster's own console; nil does not look for it.
	OpenShift *openshift.Console
}

// NewController returns the constructor that sharedmain calls.
func NewController(o Options) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		logger := logging.FromContext(ctx)
		client := plumblineclient.Get(ctx).PlumblineV1alpha1()
		open := o.Events.Informer(ctx).Lister().GitEvents(o.Namespace)
		r := &Reconciler{
			namespace:  o.Namespace,
			events:     client.GitEvents(o.Namespace),
			payloads:   client.EventPayloads(o.Namespace),
			tombstones: client.TombstonePages(o.Namespace),
			secrets:    kubeclient.Get(ctx).CoreV1(),
			closer:     o.Closer,
			open: func(event string) bool {
				found, err := open.Get(event)
				return err == nil && !found.Settled()
			},
			settings: config.NewStore(logger.Named("config")),
			clock:    clock.RealClock{},
		}
		r.settings.OpenShift = o.OpenShift.Find(ctx, kubeclient.Get(ctx))
		var err error
		sweeps := func() bool { return r.IsLeaderFor(name(o.Namespace)) }
		if r.metrics, err = newMetrics(otel.Meter(meterName), sweeps); err != nil {
			logger.Errorw("Making metrics; some will be missing", "error", err)
		}
		objects := metadata.NewForConfigOrDie(injection.GetConfig(ctx))
		r.plan(func(resource string) metadata.ResourceInterface {
			if resource == runs {
				return objects.Resource(pipelinev1.SchemeGroupVersion.WithResource(runs))
			}
			return objects.Resource(v1alpha1.SchemeGroupVersion.WithResource(resource)).Namespace(o.Namespace)
		})
		r.settings.WatchConfigs(cmw)
		r.PromoteFunc = func(b reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
			enqueue(b, name(o.Namespace))
			return nil
		}
		if err := leaderelection.Count(&r.LeaderAwareFuncs, queueName); err != nil {
			logger.Errorw("Making metrics; some will be missing", "error", err)
		}
		queue := leaderelection.NewLeasedReconciler(ctx, r, queueName, name(o.Namespace))
		impl := controller.NewContext(ctx, queue,
			controller.ControllerOptions{WorkQueueName: queueName, Logger: logger.Named(queueName), Concurrency: 1})
		queue.Enqueue = impl.MaybeEnqueueBucketKey
		r.forget = func() { impl.WorkQueue().Forget(name(o.Namespace)) }
		return impl
	}
}

func name(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: key}
}

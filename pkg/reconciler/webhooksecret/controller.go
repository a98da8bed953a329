// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"
	pkgreconciler "knative.dev/pkg/reconciler"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/injection/client"
	repositoryinformer "github.com/plumbline-ci/plumbline/pkg/client/injection/informers/pipelinesascode/v1alpha1/repository"
	"github.com/plumbline-ci/plumbline/pkg/config"
	copies "github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/pkg/runtime/apicalls"
	"github.com/plumbline-ci/plumbline/pkg/runtime/kubeevents"
	"github.com/plumbline-ci/plumbline/pkg/runtime/leaderelection"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
	"github.com/plumbline-ci/plumbline/pkg/store/signal"
)

const (
	// queueName names the workqueue, its metrics and its leases.
	queueName = "webhook-secrets"
	// concurrency is the number of shards: none waits for another one whose Secrets cannot be read.
	concurrency = copies.Shards
	// batch is how long a change of a Repository waits for others, so that many cost one write.
	batch = 100 * time.Millisecond
	// clientQPS is for the reads within their budgets, and as many calls again for the shards.
	clientQPS = 2 * (requestsPerSecond + firstsPerSecond + readsPerSecond)
	meterName = "github.com/plumbline-ci/plumbline/pkg/reconciler/webhooksecret"
)

// Options are what cmd/controller decides.
type Options struct {
	// Namespace is Plumbline's own.
	Namespace string
	// AppSecret is the name of the Secret with the GitHub App's credentials, there.
	AppSecret string
	// GlobalRepository is the name of the Repository, there, whose settings complete those of all
	// others.
	GlobalRepository string
}

// NewController returns the constructor that sharedmain calls.
func NewController(o Options) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		logger := logging.FromContext(ctx).Named(queueName)
		informer := repositoryinformer.Get(ctx).Informer()
		var resync func()
		settings := config.NewStore(logger.Named("config"), func(string, any) { resync() })
		kube := apicalls.Client(injection.GetConfig(ctx), queueName, clientQPS)
		r := newReconciler(clock.RealClock{})
		r.namespace, r.secrets, r.logger = o.Namespace, kube.CoreV1(), logger
		r.conditions = conditions{logger: logger, Condition: repositories.Condition{
			Type:      pacv1alpha1.RepositoryWebhookSecret,
			Client:    client.Get(ctx).PipelinesascodeV1alpha1(),
			Recorder:  kubeevents.Recorder(ctx),
			Namespace: o.Namespace,
		}}
		r.names = &names{
			global: types.NamespacedName{Namespace: o.Namespace, Name: o.GlobalRepository},
			app:    pacv1alpha1.SecretKey{Namespace: o.Namespace, Name: o.AppSecret, Key: copies.AppKey},
		}
		r.serve(informer.GetIndexer(), settings)
		r.PromoteFunc = func(b pkgreconciler.Bucket, enqueue func(pkgreconciler.Bucket, types.NamespacedName)) error {
			for _, key := range r.keys() {
				enqueue(b, key)
			}
			return nil
		}
		if err := leaderelection.Count(&r.LeaderAwareFuncs, queueName); err != nil {
			logger.Errorw("Making metrics; some will be missing", "error", err)
		}
		if err := r.observe(); err != nil {
			logger.Errorw("Making metrics; some will be missing", "error", err)
		}
		queue := leaderelection.NewLeasedReconciler(ctx, r, queueName, r.keys()...)
		impl := controller.NewContext(ctx, queue,
			controller.ControllerOptions{WorkQueueName: queueName, Logger: logger, Concurrency: concurrency})
		queue.Enqueue = impl.MaybeEnqueueBucketKey
		r.wake = impl.EnqueueKeyAfter
		resync = func() { // the settings may decide which Repositories are served
			r.names.changed()
			for _, key := range r.keys() {
				impl.EnqueueKeyAfter(key, batch)
			}
		}
		settings.WatchConfigs(cmw)
		_, err := informer.AddEventHandler(r.names.handler(func(shard int) { impl.EnqueueKeyAfter(r.key(shard), batch) }))
		if err != nil {
			logger.Fatalw("Watching Repositories", "error", err)
		}
		// The start does not wait for the watch: what is missing is copied anyway.
		if err := signal.Watch(ctx, kube, o.Namespace, copies.Asks, func(cm *corev1.ConfigMap) {
			r.Request(copies.Asked(cm.Data[copies.AsksKey]))
		}); err != nil {
			logger.Fatalw("Watching the requests of receivers", "error", err)
		}
		return impl
	}
}

// serve sets the Repositories that this installation serves.
func (r *Reconciler) serve(all cache.Indexer, settings repositories.Settings) {
	ours := repositories.Lister(all, settings)
	r.names.repositories, r.conditions.cached = ours, ours
	r.names.unread = func() bool { return settings.Load().Namespaces.Broken != "" }
}

// observe registers the gauge plumbline.webhook_secrets (state).
func (r *Reconciler) observe() error {
	_, err := otel.Meter(meterName).Int64ObservableGauge("plumbline.webhook_secrets", metric.WithUnit("{secret}"),
		metric.WithDescription("Webhook secrets that this process copies for the receivers, by state"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for s, n := range r.states() {
				o.Observe(int64(n), metric.WithAttributes(attribute.String("state", string(s))))
			}
			return nil
		}))
	return err
}

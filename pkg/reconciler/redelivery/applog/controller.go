// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"

	"go.opentelemetry.io/otel"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	repositoryinformer "github.com/plumbline-ci/plumbline/pkg/client/injection/informers/pipelinesascode/v1alpha1/repository"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/runtime/kubeevents"
	"github.com/plumbline-ci/plumbline/pkg/runtime/leaderelection"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

const (
	// queueName names the workqueue, its metrics and its leases.
	queueName = "deliveries"
	userAgent = "plumbline-controller/deliveries"
)

// Options are what cmd/controller decides.
type Options struct {
	// Namespace is Plumbline's own.
	Namespace string
	// AppSecret is the name of the Secret with the GitHub App's credentials, there.
	AppSecret string
	// GitHub is the service whose log is read.
	GitHub provider.Provider
	// Claims are those in Plumbline's namespace; others start their informer.
	Claims *claim.Claims
}

// NewController returns the constructor that sharedmain calls.
func NewController(o Options) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		logger := logging.FromContext(ctx).Named(queueName)
		kube := ownClient(ctx)
		claims := o.Claims.Informer(ctx)
		settings := config.NewStore(logger.Named("config"))
		r := &Reconciler{
			key:        types.NamespacedName{Namespace: o.Namespace, Name: o.AppSecret},
			open:       o.GitHub.Deliveries,
			baseURL:    func() string { return settings.Load().GitHubURL },
			store:      store{kube.CoreV1().ConfigMaps(o.Namespace)},
			secrets:    kube.CoreV1(),
			claims:     claims.Lister().RepositoryClaims(o.Namespace),
			known:      claims.Informer().HasSynced,
			namespaces: func() config.Namespaces { return settings.Load().Namespaces },
			repositories: repositories.Lister(
				repositoryinformer.Get(ctx).Informer().GetIndexer(),
				settings,
			),
			recorder: kubeevents.Recorder(ctx),
			clock:    clock.RealClock{},
			logger:   logger,
			line:     newLine(),
		}
		var err error
		if r.metrics, err = newMetrics(otel.Meter(meterName)); err != nil {
			logger.Errorw("Making metrics; some will be missing", "error", err)
		}
		settings.WatchConfigs(cmw)
		r.PromoteFunc = r.promoted
		if err := leaderelection.Count(&r.LeaderAwareFuncs, queueName); err != nil {
			logger.Errorw("Making metrics; some will be missing", "error", err)
		}
		queue := leaderelection.NewQueue(ctx, r, queueName, r.key)
		impl := controller.NewContext(
			ctx,
			queue,
			controller.ControllerOptions{WorkQueueName: queueName, Logger: logger, Concurrency: 1},
		)
		queue.Enqueue = impl.MaybeEnqueueBucketKey
		if err := watchAsks(ctx, kube, o.Namespace, func() { impl.EnqueueKeyAfter(r.key, r.Heard()) }); err != nil {
			logger.Fatalw("Watching the asks of receivers", "error", err)
		}
		return impl
	}
}

// ownClient takes no call from events. Its user agent tells its reads of Secrets from those that
// events need.
func ownClient(ctx context.Context) kubernetes.Interface {
	own := rest.CopyConfig(injection.GetConfig(ctx))
	own.UserAgent, own.QPS, own.Burst = userAgent, 0, 0 // client-go's defaults
	return kubernetes.NewForConfigOrDie(own)
}

// watchAsks calls heard when a receiver asks. It is not waited for: without it there is a look
// every few minutes.
func watchAsks(ctx context.Context, kube kubernetes.Interface, namespace string, heard func()) error {
	one := cache.NewListWatchFromClient(
		kube.CoreV1().RESTClient(),
		"configmaps",
		namespace,
		fields.OneTermEqualSelector("metadata.name", asks.Asks),
	)
	informer := cache.NewSharedInformer(one, &corev1.ConfigMap{}, 0)
	ask := func(object any) {
		if cm, ok := object.(*corev1.ConfigMap); ok && asks.Asked(cm) {
			heard()
		}
	}
	if _, err := informer.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: ask, UpdateFunc: func(_, changed any) { ask(changed) }},
	); err != nil {
		return err
	}
	go informer.Run(ctx.Done())
	return nil
}

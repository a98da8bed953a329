// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"

	"go.opentelemetry.io/otel"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	"github.com/plumbline-ci/plumbline/pkg/client/injection/client"
	repositoryinformer "github.com/plumbline-ci/plumbline/pkg/client/injection/informers/pipelinesascode/v1alpha1/repository"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
	"github.com/plumbline-ci/plumbline/pkg/runtime/apicalls"
	"github.com/plumbline-ci/plumbline/pkg/runtime/kubeevents"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
)

const (
	// queueName names the workqueue, its metrics and its leases.
	queueName = "webhooks"
	// concurrency is of steps, each of which waits for a Git service most of the time. It is four
	// times what one server or one namespace may have.
	concurrency = 4 * atOnce
	// clientQPS is for two reads of a Secret a step, when it is due and when it may run, and for
	// what is given up.
	clientQPS = 20
)

// Options are what cmd/controller decides.
type Options struct {
	// Namespace is Plumbline's own.
	Namespace string
	// GlobalRepository is the name of the Repository, there, whose settings complete those of all
	// others.
	GlobalRepository string
	// Service is the Git service whose logs are read.
	Service provider.Provider
	// Claims are those in Plumbline's namespace; others start their informer.
	Claims *claim.Claims
}

// NewController returns the constructor that sharedmain calls.
func NewController(o Options) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		logger := logging.FromContext(ctx).Named(queueName)
		kube, recorder := apicalls.Client(injection.GetConfig(ctx), queueName, clientQPS), kubeevents.Recorder(ctx)
		claims, informer := o.Claims.Informer(ctx), repositoryinformer.Get(ctx).Informer()
		var impl *controller.Impl
		settings := config.NewStore(logger.Named("config"), func(string, any) {
			impl.GlobalResync(informer) // the settings may decide which Repositories are served
		})
		s := &source{
			service:      o.Service,
			namespace:    o.Namespace,
			global:       o.GlobalRepository,
			settings:     settings.Load,
			credentials:  credentials.Reader{Namespace: o.Namespace, Kube: kube.CoreV1()},
			repositories: repositories.Lister(informer.GetIndexer(), settings),
			claims:       claims.Lister().RepositoryClaims(o.Namespace),
			events:       client.Get(ctx).PlumblineV1alpha1().GitEvents(o.Namespace),
			condition: repositories.Condition{
				Type:      pacv1alpha1.RepositoryWebhook,
				Client:    client.Get(ctx).PipelinesascodeV1alpha1(),
				Recorder:  recorder,
				Namespace: o.Namespace,
			},
			recorder: recorder,
			givenUp:  newGivenUp(kube.CoreV1().ConfigMaps(o.Namespace)),
			clock:    clock.RealClock{},
			logger:   logger,
			limits:   newLimits(),
			known:    map[types.NamespacedName]*memory{},
		}
		var err error
		if s.metrics, err = redelivery.WebhookMetrics(otel.Meter(redelivery.MeterName)); err != nil {
			logger.Errorw("Making metrics; some will be missing", "error", err)
		}
		settings.WatchConfigs(cmw)
		impl = redelivery.NewImpl(ctx, redelivery.Setup{
			Name:        queueName,
			Namespace:   o.Namespace,
			Concurrency: concurrency,
			Timeout:     stepTimeout,
		}, kube, s)
		if err := watch(impl, claims.Informer(), informer); err != nil {
			logger.Fatalw("Watching", "error", err)
		}
		return impl
	}
}

// watch wakes a Repository when it or its claim changes.
func watch(impl *controller.Impl, claims, repositories cache.SharedIndexInformer) error {
	if _, err := repositories.AddEventHandler(controller.HandleAll(impl.Enqueue)); err != nil {
		return err
	}
	_, err := claims.AddEventHandler(controller.HandleAll(func(object any) {
		if claim, ok := object.(*v1alpha1.RepositoryClaim); ok {
			owner := claim.Spec.Repository
			impl.EnqueueKey(types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name})
		}
	}))
	return err
}

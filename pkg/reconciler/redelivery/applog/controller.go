// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"

	"go.opentelemetry.io/otel"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	repositoryinformer "github.com/plumbline-ci/plumbline/pkg/client/injection/informers/pipelinesascode/v1alpha1/repository"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
	"github.com/plumbline-ci/plumbline/pkg/runtime/apicalls"
	"github.com/plumbline-ci/plumbline/pkg/runtime/kubeevents"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
)

// queueName names the workqueue, its metrics and its leases.
const queueName = "deliveries"

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
		kube := apicalls.Client(injection.GetConfig(ctx), queueName, 0)
		claims := o.Claims.Informer(ctx)
		settings := config.NewStore(logger.Named("config"))
		s := &source{
			key:      types.NamespacedName{Namespace: o.Namespace, Name: o.AppSecret},
			open:     o.GitHub.Deliveries,
			baseURL:  func() string { return settings.Load().GitHubURL },
			store:    store{redelivery.Store{ConfigMaps: kube.CoreV1().ConfigMaps(o.Namespace)}},
			secrets:  kube.CoreV1(),
			claims:   claims.Lister().RepositoryClaims(o.Namespace),
			known:    claims.Informer().HasSynced,
			settings: settings.Load,
			everywhere: func() []*pacv1alpha1.Repository {
				all, _ := repositoryinformer.Get(ctx).Lister().List(labels.Everything()) // a cache's list cannot fail
				return all
			},
			repositories: repositories.Lister(repositoryinformer.Get(ctx).Informer().GetIndexer(), settings),
			recorder:     kubeevents.Recorder(ctx),
			clock:        clock.RealClock{},
			logger:       logger,
			memory:       newMemory(),
		}
		var err error
		if s.metrics, err = redelivery.AppMetrics(otel.Meter(redelivery.MeterName)); err != nil {
			logger.Errorw("Making metrics; some will be missing", "error", err)
		}
		settings.WatchConfigs(cmw)
		return redelivery.NewImpl(ctx, redelivery.Setup{
			Name:        queueName,
			Namespace:   o.Namespace,
			Only:        s.Keys(),
			Concurrency: 1,
			Timeout:     stepTimeout,
		}, kube, s)
	}
}

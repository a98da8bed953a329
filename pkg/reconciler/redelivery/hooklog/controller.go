// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"

	"go.opentelemetry.io/otel"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
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
	"github.com/plumbline-ci/plumbline/pkg/runtime/kubeevents"
	"github.com/plumbline-ci/plumbline/pkg/runtime/leaderelection"
	"github.com/plumbline-ci/plumbline/pkg/store/repositories"
	asks "github.com/plumbline-ci/plumbline/pkg/store/signal"
)

const (
	// queueName names the workqueue, its metrics and its leases.
	queueName = "webhooks"
	userAgent = "plumbline-controller/webhooks"
	// concurrency is of steps, each of which waits for a Git service most of the time. It is four
	// times what one server or one namespace may have.
	concurrency = 4 * atOnce
	// clientQPS is for two reads of a Secret a step, when it is due and when its turn has come, and
	// for what is given up.
	clientQPS = 20
)

// Options are what cmd/controller decides.
type Options struct {
	// Namespace is Plumbline's own.
	Namespace string
	// GlobalRepository is the name of the Repository, there, whose settings complete those of all
	// others.
	GlobalRepository string
	// Service is the Git service whose webhooks are looked after.
	Service provider.Provider
	// Claims are those in Plumbline's namespace; others start their informer.
	Claims *claim.Claims
}

// NewController returns the constructor that sharedmain calls.
func NewController(o Options) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		logger := logging.FromContext(ctx).Named(queueName)
		kube, claims, informer := ownClient(ctx), o.Claims.Informer(ctx), repositoryinformer.Get(ctx)
		var impl *controller.Impl
		settings := config.NewStore(logger.Named("config"), func(string, any) {
			impl.GlobalResync(informer.Informer()) // which Repositories are served may follow from it
		})
		recorder := kubeevents.Recorder(ctx)
		r := &Reconciler{
			service:     o.Service,
			namespace:   o.Namespace,
			global:      o.GlobalRepository,
			settings:    settings.Load,
			credentials: credentials.Reader{Namespace: o.Namespace, Kube: kube.CoreV1()},
			cached: cachesOf(
				repositories.Repositories(informer.Informer().GetIndexer(), settings),
				claims.Informer().GetIndexer(),
				o.Namespace,
			),
			events: client.Get(ctx).PlumblineV1alpha1().GitEvents(o.Namespace),
			conditions: conditionsOf(
				ctx,
				o.Namespace,
				recorder,
			),
			recorder: recorder,
			givenUp:  newGivenUp(kube.CoreV1().ConfigMaps(o.Namespace)),
			clock:    clock.RealClock{},
			logger:   logger,
			pace:     newPace(),
			known:    map[types.NamespacedName]*memory{},
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
		queue := leaderelection.NewQueue(ctx, r, queueName)
		impl = controller.NewContext(
			ctx,
			queue,
			controller.ControllerOptions{WorkQueueName: queueName, Logger: logger, Concurrency: concurrency},
		)
		queue.Enqueue = impl.MaybeEnqueueBucketKey
		if err := r.watch(ctx, impl, kube, claims.Informer(), informer.Informer()); err != nil {
			logger.Fatalw("Watching", "error", err)
		}
		return impl
	}
}

// cachesOf reads the caches of informers.
func cachesOf(repositories, claims cache.Store, namespace string) caches {
	return caches{
		repository: func(owner types.NamespacedName) *pacv1alpha1.Repository {
			return found[pacv1alpha1.Repository](repositories, owner.String())
		},
		repositories: func() (all []*pacv1alpha1.Repository) {
			for _, object := range repositories.List() {
				if repository, ok := object.(*pacv1alpha1.Repository); ok {
					all = append(all, repository)
				}
			}
			return all
		},
		claim: func(name string) *v1alpha1.RepositoryClaim {
			return found[v1alpha1.RepositoryClaim](claims, namespace+"/"+name)
		},
	}
}

// found is nil for what is not there.
func found[T any](in cache.Store, key string) *T {
	object, _, _ := in.GetByKey(key) // a cache's read cannot fail
	t, _ := object.(*T)
	return t
}

func conditionsOf(ctx context.Context, namespace string, recorder record.EventRecorder) conditions {
	repositories := client.Get(ctx).PipelinesascodeV1alpha1()
	return conditions{
		read: func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error) {
			return repositories.Repositories(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		update: func(ctx context.Context, repository *pacv1alpha1.Repository) error {
			_, err := repositories.Repositories(repository.Namespace).UpdateStatus(ctx, repository, metav1.UpdateOptions{})
			return err
		},
		recorder: recorder, namespace: namespace,
	}
}

// ownClient takes no call from events. Its user agent tells its reads of Secrets from those that
// events need.
func ownClient(ctx context.Context) kubernetes.Interface {
	own := rest.CopyConfig(injection.GetConfig(ctx))
	own.UserAgent, own.QPS, own.Burst = userAgent, clientQPS, clientQPS
	return kubernetes.NewForConfigOrDie(own)
}

// watch wakes a Repository when it or its claim changes, and all of them when a receiver asks. What
// receivers ask is not waited for: without it there is a look every few minutes.
func (r *Reconciler) watch(
	ctx context.Context,
	impl *controller.Impl,
	kube kubernetes.Interface,
	claims, repositories cache.SharedIndexInformer,
) error {
	if _, err := repositories.AddEventHandler(controller.HandleAll(impl.Enqueue)); err != nil {
		return err
	}
	owner := func(object any) {
		if claim, ok := object.(*v1alpha1.RepositoryClaim); ok {
			impl.EnqueueKey(types.NamespacedName{Namespace: claim.Spec.Repository.Namespace, Name: claim.Spec.Repository.Name})
		}
	}
	if _, err := claims.AddEventHandler(controller.HandleAll(owner)); err != nil {
		return err
	}
	one := cache.NewListWatchFromClient(
		kube.CoreV1().RESTClient(),
		"configmaps",
		r.namespace,
		fields.OneTermEqualSelector("metadata.name", asks.Asks),
	)
	informer := cache.NewSharedInformer(one, &corev1.ConfigMap{}, 0)
	ask := func(object any) {
		if cm, ok := object.(*corev1.ConfigMap); ok && asks.Asked(cm) {
			after := r.Heard()
			r.each(func(owner types.NamespacedName) { impl.EnqueueKeyAfter(owner, after) })
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

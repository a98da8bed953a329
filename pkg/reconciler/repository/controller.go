// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"

	pipelineclient "github.com/tektoncd/pipeline/pkg/client/injection/client"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"
	pkgreconciler "knative.dev/pkg/reconciler"
	"knative.dev/pkg/system"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	"github.com/plumbline-ci/plumbline/pkg/client/injection/client"
	repositoryinformer "github.com/plumbline-ci/plumbline/pkg/client/injection/informers/pipelinesascode/v1alpha1/repository"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/runtime/kubeevents"
	"github.com/plumbline-ci/plumbline/pkg/runtime/leaderelection"
)

const (
	queueName = "repositories"
	// A new Repository costs two writes, one after the other. The first start may find five
	// thousand of them.
	workers = 16
)

// EventInformer is the part of the informer of open GitEvents that this package uses.
type EventInformer interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// Options are what the controller shares with others in the process.
type Options struct {
	// OpenEvents returns the unsettled GitEvents of a Repository, from the cache of EventInformer.
	OpenEvents func(namespace, name string) []*v1alpha1.GitEvent
	// EventInformer is started by the caller.
	EventInformer EventInformer
	// Claims are the claims in Plumbline's own namespace.
	Claims *claim.Claims
	// Runs is the cache of PipelineRuns, which may not be filled yet. A run that it does not have
	// is not finished.
	Runs cache.KeyListerGetter
	// GlobalRepository is the name of the Repository in Plumbline's own namespace that has the
	// default concurrency_limit; "" for none.
	GlobalRepository string
	// Clock is for tests; nil is the real one.
	Clock clock.PassiveClock
}

// NewController returns the constructor for sharedmain. It watches Repositories in all namespaces.
func NewController(options Options) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		repositories, claims := repositoryinformer.Get(ctx), options.Claims.Informer(ctx)
		r := newReconciler(options)
		r.client = client.Get(ctx)
		r.tekton = pipelineclient.Get(ctx).TektonV1()
		r.namespace = system.Namespace()
		r.repositories, r.claims = repositories.Informer().GetIndexer(), claims.Informer().GetIndexer()
		r.recorder = kubeevents.Recorder(ctx)
		r.PromoteFunc = promote(repositories.Informer().GetIndexer(), claims.Informer().GetIndexer())
		if err := leaderelection.Count(&r.LeaderAwareFuncs, queueName); err != nil {
			logging.FromContext(ctx).Errorw("Making metrics; some will be missing", "error", err)
		}

		queue := leaderelection.NewLeasedReconciler(ctx, r, queueName)
		impl := controller.NewContext(ctx, queue, controller.ControllerOptions{
			WorkQueueName: queueName, Logger: logging.FromContext(ctx), Concurrency: workers,
		})
		queue.Enqueue = impl.MaybeEnqueueBucketKey
		r.wake = impl.EnqueueKeyAfter
		w := watches{
			repositories: repositories.Informer(), claims: claims.Informer(), events: options.EventInformer, limited: r.limited,
			recent: r.recentChanged, changed: r.reportDropped,
			global: types.NamespacedName{Namespace: r.namespace, Name: r.global},
		}
		settings := config.NewStore(logging.FromContext(ctx).Named("config"), func(string, any) {
			impl.GlobalResync(repositories.Informer()) // the settings may decide who owns a URL
		})
		settings.WatchConfigs(cmw)
		r.settings = settings
		r.rivals = r.thatAreServed(rivals(repositories.Informer().GetIndexer()))
		r.budget = quota.New(func() quota.Limits { return settings.Load().Open }, r.clock, w.budgetChanged(impl.EnqueueKey))
		var err error
		if r.eventsSynced, err = w.wire(impl, r.budget); err != nil {
			logging.FromContext(ctx).Fatalw("Watching Repositories, claims and events", "error", err)
		}
		// The start does not wait for claims: a claim that is not in the cache yet is read live,
		// and wakes its owner when it arrives.
		options.Claims.Start(ctx)
		return impl
	}
}

func newReconciler(options Options) *Reconciler {
	r := &Reconciler{
		clock:      options.Clock,
		openEvents: options.OpenEvents,
		runs:       options.Runs,
		global:     options.GlobalRepository,
		retries:    backoff.New(),
	}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	return r
}

// promote enqueues each key that may have work: Repositories, and the owners of claims, which may
// be deleted.
func promote(
	repositories, claims cache.Indexer,
) func(pkgreconciler.Bucket, func(pkgreconciler.Bucket, types.NamespacedName)) error {
	return func(b pkgreconciler.Bucket, enqueue func(pkgreconciler.Bucket, types.NamespacedName)) error {
		for _, obj := range repositories.List() {
			if repository, ok := obj.(*pacv1alpha1.Repository); ok {
				enqueue(b, keyOf(repository))
			}
		}
		for _, obj := range claims.List() {
			if claim, ok := obj.(*v1alpha1.RepositoryClaim); ok {
				enqueue(b, ownerOf(claim))
			}
		}
		return nil
	}
}

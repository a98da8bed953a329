// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"errors"
	"net"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	pipelineclient "github.com/tektoncd/pipeline/pkg/client/injection/client"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/authz/claim"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/injection/client"
	repositoryinformer "github.com/plumbline-ci/plumbline/pkg/client/injection/informers/pipelinesascode/v1alpha1/repository"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/runtime/kubeevents"
	"github.com/plumbline-ci/plumbline/pkg/runtime/leaderelection"
	"github.com/plumbline-ci/plumbline/pkg/runtime/openshift"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
	"github.com/plumbline-ci/plumbline/pkg/store/informerhandler"
	"github.com/plumbline-ci/plumbline/pkg/store/pipelineruns"
)

// queueName names the workqueue, its metrics and its leases.
const queueName = "gitevents"

// NewController returns the constructor that sharedmain calls. The watches of unsettled events, of
// claims and of PipelineRuns are shared with the other reconcilers.
func NewController(
	o deps.Options, events *gitevents.Watch, claims *claim.Claims, pipelineRuns *pipelineruns.Runs,
	console *openshift.Console,
) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		logger := logging.FromContext(ctx)
		runs := pipelineRuns.Informer(ctx)
		settings := config.NewStore(logger.Named("config"))
		settings.OpenShift = console.Find(ctx, kubeclient.Get(ctx))
		o.Budget = quota.New(func() quota.Limits { return settings.Load().Open }, clock.RealClock{}, nil)
		c := cluster(ctx)
		c.Open = deps.Open{GitEventLister: events.Informer(ctx).Lister(), Of: events.Of, From: events.From}
		c.Claims, c.Runs = claims.Informer(ctx).Lister(), runs.GetIndexer()

		key := func(event string) types.NamespacedName {
			return types.NamespacedName{Namespace: o.Namespace, Name: event}
		}
		var queue *leaderelection.LeasedReconciler // the queue and impl are made with the reconciler
		var impl *controller.Impl
		r := New(c, o, deps.Process{
			Settings: settings,
			Wake:     func(event string, after time.Duration) { impl.EnqueueKeyAfter(key(event), after) },
			Holds:    func(event string) bool { return queue.Holds(key(event)) },
		})
		queue = leaderelection.NewLeasedReconciler(ctx, r, queueName)
		impl = controller.NewContext(ctx, queue, controller.ControllerOptions{
			WorkQueueName: queueName, Logger: logger.Named(queueName), Concurrency: o.Workers,
		})
		queue.Enqueue = impl.MaybeEnqueueBucketKey
		if err := errors.Join(
			metrics.ObserveOpen(c.Open.GitEvents(o.Namespace), c.Clock), metrics.ObserveQueues(r.Waiting),
			leaderelection.Count(&r.LeaderAwareFuncs, queueName),
		); err != nil {
			logger.Errorw("Making metrics; some will be missing", "error", err)
		}
		settings.WatchConfigs(cmw)
		r.start(ctx, impl, events, runs)
		return impl
	}
}

// cluster returns the clients and caches that injection provides.
func cluster(ctx context.Context) deps.Cluster {
	return deps.Cluster{
		Plumbline: plumblineclient.Get(ctx).PlumblineV1alpha1(),
		PaC:       plumblineclient.Get(ctx).PipelinesascodeV1alpha1(),
		Tekton: deps.Tekton{
			TektonV1Interface: pipelineclient.Get(ctx).TektonV1(),
			Metadata: metadata.NewForConfigOrDie(injection.GetConfig(ctx)).
				Resource(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns")),
		},
		Kube:         deps.Kube{CoreV1Interface: kubeclient.Get(ctx).CoreV1(), Logs: logsClient(injection.GetConfig(ctx))},
		Repositories: repositoryinformer.Get(ctx).Lister(),
		Recorder:     kubeevents.Recorder(ctx),
		Clock:        clock.RealClock{},
	}
}

// logsClient returns a client for logs: logs that hang must not use up the connections and the rate
// of the others. A dialer of its own makes client-go open connections of its own.
func logsClient(config *rest.Config) corev1client.CoreV1Interface {
	const qps, burst, dialLimit = 50, 100, 10 * time.Second
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = qps, burst
	config.Dial = (&net.Dialer{Timeout: dialLimit}).DialContext
	return corev1client.NewForConfigOrDie(config)
}

// start connects the informers with the reconciler, and starts those that knative does not start.
func (r *Reconciler) start(
	ctx context.Context, impl *controller.Impl, events *gitevents.Watch, runs cache.SharedIndexInformer,
) {
	logger, opened := logging.FromContext(ctx), events.Informer(ctx).Informer()
	events.BeforeTrim(r.Appeared)
	watch(ctx, opened, r.RunWatch().OnEvent(impl))
	watch(ctx, opened, r.OnEventDeleted())
	watch(ctx, runs, r.RunWatch().OnRun(impl))
	watch(ctx, repositoryinformer.Get(ctx).Informer(), r.OnRepository())
	used, err := opened.AddEventHandler(informerhandler.For(r.options.Budget.Watched, r.options.Budget.Deleted))
	if err != nil {
		logger.Fatalw("Adding up GitEvents", "error", err)
	}
	if err := controller.StartInformers(ctx.Done(), runs); err != nil {
		logger.Fatalw("Listing PipelineRuns", "error", err)
	}
	if err := events.Start(ctx); err != nil {
		logger.Fatalw("Listing GitEvents", "error", err)
	}
	cache.WaitForCacheSync(ctx.Done(), used.HasSynced)
	go r.PollSecrets(ctx)
}

// watch connects an informer, which has not started, to a handler.
func watch(ctx context.Context, informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
	if _, err := informer.AddEventHandler(handler); err != nil {
		logging.FromContext(ctx).Fatalw("Adding a handler to an informer that has not started", "error", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package gitevent carries each GitEvent through plan, create, report and annotate, and may be killed between any two
// calls: what was done is in the status, what is repeated has a deterministic name.
package gitevent

import (
	"context"
	"errors"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	pipelineclient "github.com/tektoncd/pipeline/pkg/client/injection/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	pacclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/injection/client"
	repositoryinformer "github.com/plumbline-ci/plumbline/pkg/client/injection/informers/pipelinesascode/v1alpha1/repository"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/kubeevents"
	"github.com/plumbline-ci/plumbline/pkg/leadership"
	"github.com/plumbline-ci/plumbline/pkg/openevents"
	"github.com/plumbline-ci/plumbline/pkg/openruns"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/remote"
	"github.com/plumbline-ci/plumbline/pkg/retry"
	"github.com/plumbline-ci/plumbline/pkg/turns"
)

// queueName names the workqueue, its metrics and its leases.
const queueName = "gitevents"

// Options are what cmd/controller decides.
type Options struct {
	// Namespace is Plumbline's own.
	Namespace string
	// Version is written to the version label of PipelineRuns.
	Version string
	// Providers are the Git services, by name.
	Providers map[string]provider.Provider
	// Remote fetches what annotations refer to by web address or name on a hub.
	Remote *remote.Client
	// AppSecret is the name of the Secret with the GitHub App's credentials, in Namespace.
	AppSecret string
	// GlobalRepository is the name of the Repository in Namespace whose settings complete those of all others; it need
	// not exist, and no Repository does so when the name is empty.
	GlobalRepository string
	// Events is the watch of open events, shared with the other reconcilers.
	Events *openevents.Watch
	// Workers is the number of events reconciled at once; a Git host gets at most a quarter of them.
	Workers int
	// OperatorRetry is how long a fault waits that an operator has to mend; 0 is fault.OperatorRetry.
	OperatorRetry time.Duration
	// CredentialLook is how often the Secrets are read that events wait for; 0 is credentials.Look.
	CredentialLook time.Duration
	// LateReports is how long after a takeover another process's post may land; 0 is the constant LateReports.
	LateReports time.Duration
	// Identity is this process's name among all that ever ran; a restart is another process.
	Identity string
}

// NewController returns the constructor that sharedmain calls.
func NewController(o Options) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		logger := logging.FromContext(ctx)
		runs := openruns.Informer(ctx, o.Namespace)
		client := plumblineclient.Get(ctx).PlumblineV1alpha1()
		r := &Reconciler{
			Options:  o,
			open:     o.Events.Informer(ctx).Lister().GitEvents(o.Namespace),
			events:   client.GitEvents(o.Namespace),
			payloads: client.EventPayloads(o.Namespace),
			runs:     runs.GetIndexer(),
			tekton:   pipelineclient.Get(ctx).TektonV1(),
			kube:     kubeclient.Get(ctx).CoreV1(),
			clock:    clock.RealClock{},
			recorder: kubeevents.Recorder(ctx),
			turns:    turns.New(max(1, o.Workers/4)),
			metrics:  newMetrics(),
			retries:  retry.New(),
		}
		r.credentials = r.keeper(repositoryinformer.Get(ctx).Lister(), plumblineclient.Get(ctx).PipelinesascodeV1alpha1())
		r.leads.take(r.clock.Now())
		r.PromoteFunc = r.promote
		if err := errors.Join(r.observeOpen(), leadership.Count(&r.LeaderAwareFuncs, queueName)); err != nil {
			logger.Errorw("Making metrics; some will be missing", "error", err)
		}
		r.settings = config.NewStore(logger.Named("config"))
		r.settings.WatchConfigs(cmw)
		impl := controller.NewContext(ctx, r, controller.ControllerOptions{WorkQueueName: queueName, Logger: logger.Named(queueName), Concurrency: o.Workers})
		r.wake = func(event string, after time.Duration) {
			impl.EnqueueKeyAfter(types.NamespacedName{Namespace: o.Namespace, Name: event}, after)
		}
		r.watch(ctx, impl, runs)
		go r.credentials.LookAround(ctx, o.CredentialLook, r.leadsOpen)
		return impl
	}
}

// keeper makes what logs events in.
func (r *Reconciler) keeper(cache paclisters.RepositoryLister, repositories pacclient.RepositoriesGetter) *credentials.Keeper {
	return credentials.New(credentials.Options{
		Namespace: r.Namespace, AppSecret: r.AppSecret, GlobalRepository: r.GlobalRepository, Providers: r.Providers, Kube: r.kube,
		Cache: cache, Repositories: repositories, Turns: r.turns, Clock: r.clock, Wake: func(event string, after time.Duration) { r.wake(event, after) },
	})
}

// leadsOpen tells whether this process leads an event that is open.
func (r *Reconciler) leadsOpen(event string) bool {
	_, err := r.unsettled(event)
	return err == nil && r.IsLeaderFor(types.NamespacedName{Namespace: r.Namespace, Name: event})
}

func (r *Reconciler) repositoryChanged(before, after any) {
	r.credentials.RepositoryChanged(before, after, func() []*v1alpha1.GitEvent {
		events, _ := r.open.List(labels.Everything()) // a list of a cache has no error
		return events
	})
}

// promote enqueues what a new leader has to look at: the open events.
func (r *Reconciler) promote(bucket reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
	r.leads.take(r.clock.Now())
	events, err := r.open.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, event := range events {
		r.retries.Forget(event.Name) // from before another process led; of another bucket's it costs an attempt
		enqueue(bucket, types.NamespacedName{Namespace: event.Namespace, Name: event.Name})
	}
	return nil
}

// watch connects the informers to the queue. Updates of a GitEvent come from this reconciler alone and are not
// enqueued: a status write would otherwise defeat the backoff. Resyncs are.
func (r *Reconciler) watch(ctx context.Context, impl *controller.Impl, runs cache.SharedIndexInformer) {
	logger := logging.FromContext(ctx)
	handlers := map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		r.Events.Informer(ctx).Informer(): cache.ResourceEventHandlerFuncs{
			AddFunc: impl.Enqueue,
			UpdateFunc: func(before, after any) {
				if sameVersion(before, after) {
					impl.Enqueue(after)
				}
			},
		},
		runs: cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { r.enqueueRun(impl, obj) },
			UpdateFunc: func(before, after any) {
				if sameVersion(before, after) || moved(before, after) {
					r.enqueueRun(impl, after)
					r.enqueueRun(impl, before) // it may have named another event, which nothing else tells any more
				}
			},
			DeleteFunc: func(obj any) {
				r.noteDeleted(obj)
				if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = gone.Obj
				}
				r.enqueueRun(impl, obj)
			},
		},
		repositoryinformer.Get(ctx).Informer(): cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(obj any, known bool) {
				if !known {
					r.repositoryChanged(nil, obj)
				}
			},
			UpdateFunc: r.repositoryChanged,
		},
	}
	for informer, handler := range handlers {
		if _, err := informer.AddEventHandler(handler); err != nil {
			logger.Fatalw("Adding a handler to an informer that has not started", "error", err)
		}
	}
	if err := controller.StartInformers(ctx.Done(), runs); err != nil {
		logger.Fatalw("Listing PipelineRuns", "error", err)
	}
	if err := r.Events.Start(ctx); err != nil {
		logger.Fatalw("Listing GitEvents", "error", err)
	}
}

func (r *Reconciler) enqueueRun(impl *controller.Impl, obj any) {
	run, ok := obj.(*pipelinev1.PipelineRun)
	if !ok {
		return
	}
	impl.EnqueueKey(types.NamespacedName{Namespace: r.Namespace, Name: run.Labels[plumbline.EventLabel]})
}

// moved tells whether a run's change means something to its event: its conditions, its start, its deletion, its event's name.
func moved(before, after any) bool {
	a, okA := before.(*pipelinev1.PipelineRun)
	b, okB := after.(*pipelinev1.PipelineRun)
	if !okA || !okB {
		return true
	}
	return a.IsDone() != b.IsDone() || a.HasStarted() != b.HasStarted() || a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() ||
		a.Labels[plumbline.EventLabel] != b.Labels[plumbline.EventLabel]
}

func sameVersion(before, after any) bool {
	a, okA := before.(metav1.Object)
	b, okB := after.(metav1.Object)
	return okA && okB && a.GetResourceVersion() == b.GetResourceVersion()
}

// unsettled is what the lister holds; a key it does not know needs nothing.
func (r *Reconciler) unsettled(name string) (*v1alpha1.GitEvent, error) {
	return r.open.Get(name)
}

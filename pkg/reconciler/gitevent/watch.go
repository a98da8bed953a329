// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Queue is the workqueue, as the informers fill it.
type Queue interface {
	Enqueue(obj any)
	EnqueueKey(key types.NamespacedName)
}

// OnEvent enqueues open events. Updates of a GitEvent come from this reconciler alone and are not enqueued: a status write
// would otherwise defeat the backoff. Resyncs are.
func (r *Reconciler) OnEvent(queue Queue) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: queue.Enqueue,
		UpdateFunc: func(before, after any) {
			if sameVersion(before, after) {
				queue.Enqueue(after)
			}
		},
	}
}

// OnRun enqueues the event of a PipelineRun when something changes that means something to it.
func (r *Reconciler) OnRun(queue Queue) cache.ResourceEventHandler {
	enqueue := func(obj any) {
		if run, ok := obj.(*pipelinev1.PipelineRun); ok {
			queue.EnqueueKey(types.NamespacedName{Namespace: r.options.Namespace, Name: run.Labels[plumbline.EventLabel]})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(before, after any) {
			if sameVersion(before, after) || moved(before, after) {
				enqueue(after)
				enqueue(before) // it may have named another event, which nothing else tells any more
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			r.noteDeleted(obj)
			enqueue(obj)
		},
	}
}

// OnRepository wakes the events that wait for an operator, who may have changed the Repository for that.
func (r *Reconciler) OnRepository() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, known bool) {
			if !known {
				r.repositoryChanged(nil, obj)
			}
		},
		UpdateFunc: r.repositoryChanged,
	}
}

func (r *Reconciler) repositoryChanged(before, after any) {
	r.credentials.RepositoryChanged(before, after, r.listed)
}

// LookAround reads the Secrets that events wait for until ctx is done.
func (r *Reconciler) LookAround(ctx context.Context) {
	r.credentials.LookAround(ctx, r.options.Times.CredentialLook, r.leadsOpen)
}

// leadsOpen tells whether an event is open and this process's.
func (r *Reconciler) leadsOpen(event string) bool {
	_, err := r.unsettled(event)
	return err == nil && r.IsLeaderFor(types.NamespacedName{Namespace: r.options.Namespace, Name: event})
}

func (r *Reconciler) listed() []*v1alpha1.GitEvent {
	events, err := r.open()
	if err != nil {
		return nil // a list of a cache has no error
	}
	return events
}

// noteDeleted remembers a PipelineRun that was deleted while its event was open. Every replica does: the one that created
// it may have ended before it could record that.
func (r *Reconciler) noteDeleted(obj any) {
	run, ok := obj.(*pipelinev1.PipelineRun)
	if !ok {
		return
	}
	event, err := r.unsettled(run.Labels[plumbline.EventLabel])
	if err != nil || run.Namespace != event.Spec.Repository.Namespace { // settled: nothing is created any more; or another's label
		return
	}
	r.steps.Create.Created.Note(event.Name, event.UID, run.Name, run.UID)
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

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/informerhandler"
)

// RunWatch returns what wakes events for their PipelineRuns.
func (r *Reconciler) RunWatch() *Watch {
	return &Watch{
		Open: r.cluster.Open.GitEvents(r.options.Namespace),
		Runs: r.cluster.Runs,
		Deleted: func(event *v1alpha1.GitEvent, run *pipelinev1.PipelineRun) {
			r.steps.Create.Created.Note(event.Name, event.UID, run.Name, run.UID)
			r.steps.Observe.Deleted.Note(run)
		},
	}
}

// Appeared is called with each unsettled event that the watch brings, whole. A new event has its
// first reconcile without a read.
func (r *Reconciler) Appeared(event *v1alpha1.GitEvent) {
	if !r.IsLeaderFor(types.NamespacedName{Namespace: event.Namespace, Name: event.Name}) {
		return
	}
	_, err := r.unsettled(event.Name)
	if err != nil && equality.Semantic.DeepEqual(event.Status, v1alpha1.GitEventStatus{}) {
		r.state.Cache.Appeared(event)
	}
}

// OnEventDeleted removes settled or deleted events from the cache.
func (r *Reconciler) OnEventDeleted() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if event, ok := informerhandler.Object[*v1alpha1.GitEvent](obj); ok {
			r.state.Cache.Forget(event.Name)
		}
	}}
}

// OnRepository wakes the events that wait for an operator, who may have changed the Repository for
// that.
func (r *Reconciler) OnRepository() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, known bool) {
			if !known {
				r.repositoryChanged(nil, obj)
			}
		},
		UpdateFunc: r.repositoryChanged,
		DeleteFunc: func(obj any) { r.steps.Create.Queue.Changed(nil, obj, r.state.Wake) },
	}
}

func (r *Reconciler) repositoryChanged(before, after any) {
	r.credentials.RepositoryChanged(before, after, r.listed)
	r.steps.Create.Queue.Changed(before, after, r.state.Wake)
}

// PollSecrets reads the Secrets that events wait for until ctx is done.
func (r *Reconciler) PollSecrets(ctx context.Context) {
	r.credentials.PollSecrets(ctx, r.options.Times.CredentialLook, r.leadsOpen)
}

// leadsOpen reports whether an event is unsettled and this process leads it.
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

// Waiting returns how many events wait in queues, by the share of the workers that was exhausted.
func (r *Reconciler) Waiting() map[string]int { return r.queue.Waiting() }

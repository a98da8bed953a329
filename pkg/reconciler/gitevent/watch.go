// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// RunWatch wakes events for their PipelineRuns.
func (r *Reconciler) RunWatch() *Watch {
	return &Watch{
		Open: r.cluster.Open.GitEvents(r.options.Namespace),
		Runs: r.cluster.Runs,
		Deleted: func(event *v1alpha1.GitEvent, run *pipelinev1.PipelineRun) {
			r.steps.Create.Created.Note(event.Name, event.UID, run.Name, run.UID)
			r.steps.Observe.Ended.Note(run)
		},
	}
}

// Appeared is told of each open event that the watch brings, whole. One that is new has its first
// reconcile without a read.
func (r *Reconciler) Appeared(event *v1alpha1.GitEvent) {
	if !r.IsLeaderFor(types.NamespacedName{Namespace: event.Namespace, Name: event.Name}) {
		return
	}
	if _, err := r.unsettled(
		event.Name,
	); err != nil &&
		equality.Semantic.DeepEqual(event.Status, v1alpha1.GitEventStatus{}) {
		r.desk.Known.Appeared(event)
	}
}

// OnGone forgets events that are settled or deleted.
func (r *Reconciler) OnGone() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if event, ok := obj.(*v1alpha1.GitEvent); ok {
			r.desk.Known.Forget(event.Name)
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
		DeleteFunc: func(obj any) { r.steps.Create.Line.Changed(nil, obj, r.desk.Wake) },
	}
}

func (r *Reconciler) repositoryChanged(before, after any) {
	r.credentials.RepositoryChanged(before, after, r.listed)
	r.steps.Create.Line.Changed(before, after, r.desk.Wake)
}

// LookAround reads the Secrets that events wait for until ctx is done.
func (r *Reconciler) LookAround(ctx context.Context) {
	r.credentials.PollSecrets(ctx, r.options.Times.CredentialLook, r.leadsOpen)
}

// leadsOpen reports whether an event is open and this process's.
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

// Waiting returns how many events stand in lines, by the share of the workers of which each found
// no turn.
func (r *Reconciler) Waiting() map[string]int { return r.queue.Waiting() }

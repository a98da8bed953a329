// SPDX-License-Identifier: Apache-2.0

// Package gitevent tells which events a change of a PipelineRun wakes. Anybody who may write
// PipelineRuns may label one with the name of an event, or with any other: a run counts only if the
// event that it names records it (S9).
package gitevent

import (
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
)

// Queue is the workqueue of the events, as the informers fill it.
type Queue interface {
	Enqueue(obj any)
}

// Watch joins the caches of two informers, which tell of changes in no order: of what one tells
// before the other knows of it, the other tells.
type Watch struct {
	// Open is the cache of the open events.
	Open listers.GitEventNamespaceLister
	// Runs is the cache of PipelineRuns.
	Runs cache.KeyListerGetter
	// Deleted is told of each run of an open event that was deleted, or that is not watched any
	// more, as it was last.
	Deleted func(event *v1alpha1.GitEvent, run *pipelinev1.PipelineRun)
}

// OnEvent enqueues open events. Updates of a GitEvent come from its reconciler and are not
// enqueued: a status write would otherwise defeat the backoff. Resyncs are, and that another event
// has cancelled this one, and so is what its runs may have told before the cache knew that they are
// its runs.
func (w *Watch) OnEvent(queue Queue) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: queue.Enqueue,
		UpdateFunc: func(before, after any) {
			if sameVersion(before, after) || cancelled(before, after) || w.missed(before, after) {
				queue.Enqueue(after)
			}
		},
	}
}

// OnRun enqueues the event of a PipelineRun when something changes that means something to it.
func (w *Watch) OnRun(queue Queue) cache.ResourceEventHandler {
	enqueue := func(obj any) {
		if event, _ := w.eventOf(obj); event != nil {
			queue.Enqueue(event)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(before, after any) {
			if sameVersion(before, after) || significant(before, after) {
				enqueue(after)
				enqueue(before) // it may have named another event, which nothing else tells any more
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			// Every replica takes note: the one that created it may have ended before it could
			// record that.
			if event, run := w.eventOf(obj); event != nil {
				w.Deleted(event, run)
			}
			enqueue(obj)
		},
	}
}

// eventOf returns the open event that a run names and that expects it, nil if there is none.
func (w *Watch) eventOf(obj any) (*v1alpha1.GitEvent, *pipelinev1.PipelineRun) {
	run, ok := obj.(*pipelinev1.PipelineRun)
	if !ok {
		return nil, nil
	}
	event, err := w.Open.Get(run.Labels[plumbline.EventLabel])
	if err != nil { // settled: nothing is created any more; or the label was made up
		return nil, nil
	}
	for i := range event.Status.Runs {
		if expected := &event.Status.Runs[i]; expected.Name == run.Name && expected.Namespace == run.Namespace &&
			expects(expected, run.UID) {
			return event, run
		}
	}
	return nil, nil
}

// expects reports whether an object with the name of a run is the one that the event records, or
// may be: the event is planned, and which object was created is not recorded yet.
func expects(run *v1alpha1.Run, uid types.UID) bool {
	return run.UID == uid || run.UID == "" && run.Refused == nil && run.Result == nil
}

// missed reports whether a run that the event before did not know has something to tell: it has
// begun or ended, or is gone.
func (w *Watch) missed(before, after any) bool {
	a, okA := before.(*v1alpha1.GitEvent)
	b, okB := after.(*v1alpha1.GitEvent)
	if !okA || !okB {
		return false
	}
	known := map[string]*v1alpha1.Run{}
	for i := range a.Status.Runs {
		known[a.Status.Runs[i].Name] = &a.Status.Runs[i]
	}
	for i := range b.Status.Runs {
		run := &b.Status.Runs[i]
		if was := known[run.Name]; (was == nil || !expects(was, run.UID)) && w.hasNews(run) {
			return true
		}
	}
	return false
}

// cancelled reports whether another event ends what this one has started.
func cancelled(before, after any) bool {
	a, okA := before.(*v1alpha1.GitEvent)
	b, okB := after.(*v1alpha1.GitEvent)
	return okA && okB && !a.Knows(b)
}

// tells reports whether the cache says of a run that it has begun, ended or is gone. A run without
// a UID that the cache does not have was not created yet.
func (w *Watch) hasNews(run *v1alpha1.Run) bool {
	obj, exists, err := w.Runs.GetByKey(run.Namespace + "/" + run.Name)
	cached, ok := obj.(*pipelinev1.PipelineRun)
	if err != nil || !exists || !ok {
		return run.UID != ""
	}
	if !expects(run, cached.UID) {
		return run.UID != ""
	}
	return cached.IsDone() || cached.HasStarted() || !cached.DeletionTimestamp.IsZero()
}

// moved reports whether a run's change means something to its event: its conditions, its start, its
// deletion, its event's name.
func significant(before, after any) bool {
	a, okA := before.(*pipelinev1.PipelineRun)
	b, okB := after.(*pipelinev1.PipelineRun)
	if !okA || !okB {
		return true
	}
	return a.IsDone() != b.IsDone() || a.HasStarted() != b.HasStarted() || a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() ||
		a.UID != b.UID ||
		a.Labels[plumbline.EventLabel] != b.Labels[plumbline.EventLabel]
}

func sameVersion(before, after any) bool {
	a, okA := before.(metav1.Object)
	b, okB := after.(metav1.Object)
	return okA && okB && a.GetResourceVersion() == b.GetResourceVersion()
}

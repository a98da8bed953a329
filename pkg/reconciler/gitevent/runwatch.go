// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/informerhandler"
)

// Queue is the workqueue of the events, as the informers fill it.
type Queue interface {
	Enqueue(obj any)
}

// Watch decides which changes of PipelineRuns wake which events. An account that may write
// PipelineRuns may label one with the name of any event: a run counts only if the event that it
// names has recorded it (S9). The two informers report changes in no order. If one reports a change
// before the other one's cache has what it needs, the other one's next report wakes the event.
type Watch struct {
	// Open is the cache of the unsettled events.
	Open listers.GitEventNamespaceLister
	// Runs is the cache of PipelineRuns.
	Runs cache.KeyListerGetter
	// Deleted is called with the last state of each run of an unsettled event that was deleted, or
	// that is not watched any more.
	Deleted func(event *v1alpha1.GitEvent, run *pipelinev1.PipelineRun)
}

// OnEvent enqueues unsettled events. Updates of a GitEvent come from its reconciler and are not
// enqueued: otherwise a status write would defeat the backoff. Enqueued are resyncs, cancellations
// by other events, and run changes that were reported before the cache linked the run to this
// event.
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

// OnRun enqueues the event of a PipelineRun if a significant part of it changes.
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
				enqueue(before) // it may have named another event, which gets no other report of it
			}
		},
		DeleteFunc: func(obj any) {
			// Every replica records it: the one that created the run may have crashed before it
			// could record it.
			if event, run := w.eventOf(obj); event != nil {
				w.Deleted(event, run)
			}
			enqueue(obj)
		},
	}
}

// eventOf returns the unsettled event that a run names and that expects it, nil if there is none.
func (w *Watch) eventOf(obj any) (*v1alpha1.GitEvent, *pipelinev1.PipelineRun) {
	run, ok := informerhandler.Object[*pipelinev1.PipelineRun](obj)
	if !ok {
		return nil, nil
	}
	event, err := w.Open.Get(run.Labels[plumbline.EventLabel])
	if err != nil { // the event is settled, so nothing is created any more; or the label is false
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

// expects reports whether an object with the name of a run is the one that the event has recorded,
// or may be: the event is planned, and which object was created is not recorded yet.
func expects(run *v1alpha1.Run, uid types.UID) bool {
	return run.UID == uid || run.UID == "" && run.Refused == nil && run.Result == nil
}

// missed reports whether a run that is new in this version has already started, finished or been
// deleted.
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

// cancelled reports whether another event stops what this one has started.
func cancelled(before, after any) bool {
	a, okA := before.(*v1alpha1.GitEvent)
	b, okB := after.(*v1alpha1.GitEvent)
	return okA && okB && !a.Knows(b)
}

// hasNews reports whether, by the cache, a run has started, is finished or is gone. A run without a
// UID that the cache does not have was not created yet.
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

// significant reports whether a run's change means something to its event: its conditions, its
// start, its deletion, the name of its event.
func significant(before, after any) bool {
	a, okA := before.(*pipelinev1.PipelineRun)
	b, okB := after.(*pipelinev1.PipelineRun)
	if !okA || !okB {
		return true
	}
	return a.IsDone() != b.IsDone() || a.HasStarted() != b.HasStarted() ||
		a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() ||
		a.UID != b.UID ||
		a.Labels[plumbline.EventLabel] != b.Labels[plumbline.EventLabel]
}

func sameVersion(before, after any) bool {
	a, okA := before.(metav1.Object)
	b, okB := after.(metav1.Object)
	return okA && okB && a.GetResourceVersion() == b.GetResourceVersion()
}

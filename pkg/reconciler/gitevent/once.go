// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// A planned name is created once (I-2). The name alone sees to that while the PipelineRun is there; once it is deleted the
// status does, which has its UID. What is between the create and the record is described in docs/adr/0013.

// recordAfter is how long a PipelineRun may be there before it is recorded. An event with few runs pays nothing for it:
// the write that the report needs comes sooner.
const recordAfter = time.Second

// made takes note of a PipelineRun that is there, created now or before.
func (w *work) made(run *pipelinev1.PipelineRun) {
	w.r.created.Note(w.event.Name, w.event.UID, run.Name, run.UID)
	w.live[run.Name] = run
	if w.unrecorded.IsZero() {
		w.unrecorded = w.r.clock.Now()
	}
}

// recall gives runs the UIDs that this process could not record before: one that was deleted meanwhile is not created
// again.
func (w *work) recall() {
	for i := range w.event.Status.Runs {
		run := &w.event.Status.Runs[i]
		if !creatable(run) {
			continue
		}
		if run.UID = w.r.created.UID(w.event.Name, w.event.UID, run.Name); run.UID != "" {
			w.clear(stepCreate + run.Name)
			w.unrecorded = w.r.clock.Now()
		}
	}
}

// recorded forgets what the stored status knows now.
func (w *work) recorded() {
	w.unrecorded = time.Time{}
	for i := range w.event.Status.Runs {
		if run := &w.event.Status.Runs[i]; run.UID != "" {
			w.r.created.Recorded(w.event.Name, run.Name)
		}
	}
	if w.event.Settled() {
		w.r.created.Forget(w.event.Name)
	}
}

// recordMade records what was created if the first of it is there for longer than so long.
func (w *work) recordMade(ctx context.Context, after time.Duration) error {
	if w.unrecorded.IsZero() || w.r.clock.Since(w.unrecorded) < after {
		return nil
	}
	return w.record(ctx)
}

// noteDeleted remembers a PipelineRun that was deleted while its event was open. Every replica does: the one that created
// it may have ended before it could record that.
func (r *Reconciler) noteDeleted(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	run, ok := obj.(*pipelinev1.PipelineRun)
	if !ok {
		return
	}
	event, err := r.unsettled(run.Labels[plumbline.EventLabel])
	if err != nil || run.Namespace != event.Spec.Repository.Namespace { // settled: nothing is created any more; or another's label
		return
	}
	r.created.Note(event.Name, event.UID, run.Name, run.UID)
}

const reasonPaused = "Paused"

// fresh is called before anything is created. A process that was paused, or had to wait long for an answer, reads the event
// again: another one may have created, recorded and settled it meanwhile.
func (w *work) fresh(ctx context.Context) error {
	paused := w.paused()
	if paused == nil {
		return nil
	}
	asked := w.r.clock.Now()
	live, err := w.r.events.Get(ctx, w.event.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return paused
	}
	if err != nil {
		return fault.FromKube(fault.VerbRead, fmt.Errorf("reading GitEvent %s again: %w", w.event.Name, err))
	}
	if live.UID != w.event.UID || live.ResourceVersion != w.event.ResourceVersion {
		return paused
	}
	w.readAt = asked
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"runtime/debug"

	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// maxPanics is how many panics end the planning of an event. With five minutes after each that is time enough to take a
// bad release back, and too often for a coincidence.
const maxPanics = 5

const (
	reasonPanic  = "Panic"
	reasonParked = "Parked"
)

// panicked takes note of a panic and returns the fault to wait with. The status is the one that was recorded last:
// nobody knows what the panic has left of it. Nothing is derived from the event: that may be what panics.
func (w *work) panicked(ctx context.Context, cause any) error {
	logging.FromContext(ctx).Errorw("Panic while reconciling", "panic", cause, "stack", string(debug.Stack()))
	w.r.metrics.panicked(ctx)
	w.event.Status, w.manifests, w.news = *w.stored.DeepCopy(), nil, nil
	const message = "processing this event panics; the controller's log has the stack"
	if w.planned() && w.event.Status.Panics == maxPanics-1 {
		w.tell(reasonPanic, message) // once, and when it is no coincidence: it cannot be parked
	}
	w.event.Status.Panics = min(w.event.Status.Panics+1, maxPanics)
	return fault.Operatorf(reasonPanic, message)
}

// tell makes one Kubernetes Event of what is not told as the reason of a wait.
func (w *work) tell(reason, message string) {
	about := v1alpha1.Wait{Step: stepReconcile, Class: fault.Operator.String(), Reason: reason}
	w.news = append(w.news, news{about, fmt.Sprintf("%s: %s", w.event.Name, message)})
}

// planOrPark plans, unless that has panicked too often. A panic is a wait of this step alone: what is planned already is
// created and reported meanwhile. And what is planned is never parked: a run that exists must be reported, so the rest is
// tried again slowly for as long as it takes.
func (r *Reconciler) planOrPark(ctx context.Context, w *work) (err error) {
	if !w.planned() && w.event.Status.Panics >= maxPanics {
		return w.park(ctx)
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = w.panicked(ctx, cause)
		}
	}()
	return r.plan(ctx, w)
}

func (w *work) park(ctx context.Context) error {
	message := fmt.Sprintf("planning this event panicked %d times; the controller's log has the stacks. "+
		"Report it, and deliver the event again once the cause is gone", maxPanics)
	w.tell(reasonParked, message)
	err := w.abandon(ctx, v1alpha1.DispositionRefused, reasonParked, message)
	if err == nil {
		w.r.metrics.parked(ctx)
	}
	return err
}

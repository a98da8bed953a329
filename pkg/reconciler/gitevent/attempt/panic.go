// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"runtime/debug"

	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// MaxPanics is how many panics end the planning of an event. With five minutes after each, there is
// enough time to roll back a bad release, and a coincidence is unlikely.
const MaxPanics = 5

// Panicked records a panic and returns the fault because of which the event waits. It restores the
// status that was written last, because the panic may have left the current one half changed. It
// derives nothing from the event: that may be what panics.
func (a *Attempt) Panicked(ctx context.Context, cause any) error {
	logging.FromContext(ctx).Errorw("Panic while reconciling", "panic", cause, "stack", string(debug.Stack()))
	a.Waits.state.Metrics.Panicked(ctx)
	a.Restore()
	a.Waits.events = nil
	const message = "processing this event panics; the controller's log has the stack"
	if a.Planned() && a.Event.Status.Panics == MaxPanics-1 {
		a.Waits.WarningEvent(ReasonPanic, message) // once, and not for a coincidence: a planned event cannot be parked
	}
	a.Event.Status.Panics = min(a.Event.Status.Panics+1, MaxPanics)
	return fault.Operatorf(ReasonPanic, message)
}

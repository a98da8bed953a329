// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"time"

	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/credentials"
)

// goneLimit is how long reports wait for a Repository that is gone, and with it the credentials for them: long enough to
// delete and create it again (E4).
const goneLimit = 10 * time.Minute

// unreportable tells whether all that is left is to report the ends of runs, and nobody can: the Repository is gone for
// goneLimit, and it alone named the credentials, or there is no hope for another reason. Where a GitHub App's still work,
// reports are sent as ever.
func (w *work) unreportable() bool {
	wait := w.wait(stepReport)
	if !w.stands(wait) || !w.decided() || !w.over() {
		return false
	}
	return wait.Reason == credentials.ReasonRepositoryGone && w.r.clock.Since(wait.Since.Time) >= goneLimit || w.hopeless(wait)
}

// over tells whether every run is refused or has ended.
func (w *work) over() bool {
	for i := range w.event.Status.Runs {
		if run := &w.event.Status.Runs[i]; run.Refused == nil && run.Result == nil {
			return false
		}
	}
	return true
}

// drop settles an event whose reports nobody can send. Its condition Reported keeps the reason.
func (r *Reconciler) drop(ctx context.Context, w *work) error {
	left, wait := len(w.outstanding()), w.wait(stepReport)
	logging.FromContext(ctx).Errorw("Reports are given up", "event", w.event.Name, "checks", left, "reason", wait.Reason, "message", wait.Message)
	if err := r.finish(ctx, w); err != nil {
		return r.requeue(err, w.record(ctx))
	}
	r.metrics.dropped(ctx, left)
	return nil
}

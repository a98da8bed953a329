// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// maxClosed is for how many PipelineRuns one pass calls the Git services. Thousands are left after
// Plumbline's namespace was deleted and installed again. The next pass takes others.
const maxClosed = 100

// maxClosedOf is the same for one namespace: its users could otherwise use all of each pass.
const maxClosedOf = maxClosed / 4

// Closer closes checks that no event closes.
type Closer interface {
	// Close closes the check of a PipelineRun whose event was deleted. It reports whether it has
	// looked up the event, and whether it has called a Git service.
	Close(ctx context.Context, run *metav1.PartialObjectMetadata) (checked, called bool, err error)
	// Report reports what a settled event has given up to report. It calls may before it calls a
	// Git service for a namespace.
	Report(ctx context.Context, event *metav1.PartialObjectMetadata, may func(namespace string) bool) error
}

// report handles as many events in a pass, and of a namespace, as closeRun handles runs. A later
// pass does not list what is reported.
func (r *Reconciler) report(ctx context.Context, event *metav1.PartialObjectMetadata) error {
	err := r.closer.Report(ctx, event, func(namespace string) bool {
		if r.found.reported >= maxClosed || r.found.reportedOf[namespace] >= maxClosedOf {
			return false
		}
		r.found.reported++
		r.found.reportedOf[namespace]++
		return true
	})
	if err != nil {
		logging.FromContext(ctx).Errorw("Not reported: what a GitEvent has given up", "event", event.Name, "error", err)
		r.metrics.skipped(ctx, r.phases[r.at.phase].name)
	}
	return nil
}

// closeRun skips the runs of unsettled events, which are nearly all. It retries no failure in this
// pass: a Git service may hang, and meanwhile nothing else is swept.
func (r *Reconciler) closeRun(ctx context.Context, run *metav1.PartialObjectMetadata) error {
	if r.open(run.Labels[plumbline.EventLabel]) || !r.limit.may(run) || r.found.closedOf[run.Namespace] >= maxClosedOf {
		return nil
	}
	checked, called, err := r.closer.Close(ctx, run)
	if called {
		r.found.closed++
		r.found.closedOf[run.Namespace]++
	}
	if r.found.closed >= maxClosed {
		r.limit.end()
	}
	if checked {
		r.limit.checked(run)
	}
	if err != nil {
		logging.FromContext(ctx).
			Errorw("Not closed: the check of a PipelineRun without a GitEvent", "namespace", run.Namespace, "run", run.Name, "error", err)
		r.metrics.skipped(ctx, r.phases[r.at.phase].name)
	}
	return nil
}

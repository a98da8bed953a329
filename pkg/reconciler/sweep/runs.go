// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// maxClosed is for how many PipelineRuns one pass asks the Git services. Whoever deletes
// Plumbline's namespace and installs it again leaves thousands; the next pass goes on with the
// others.
const maxClosed = 100

// maxClosedOf is for how many of one namespace: whoever may create PipelineRuns could have all of
// each pass.
const maxClosedOf = maxClosed / 4

// Closer closes checks that no event closes.
type Closer interface {
	// Close closes the check of a PipelineRun whose event was deleted. It reports whether it has
	// looked its event up, and whether it has asked a Git service.
	Close(ctx context.Context, run *metav1.PartialObjectMetadata) (looked, asked bool, err error)
	// Report reports what a settled event has given up to report. It asks whether it may before it
	// asks a Git service for a namespace.
	Report(ctx context.Context, event *metav1.PartialObjectMetadata, may func(namespace string) bool) error
}

// report is for as many events in a pass, and of a namespace, as closeRun is for runs. What is
// reported is not listed any more.
func (r *Reconciler) report(ctx context.Context, event *metav1.PartialObjectMetadata) error {
	err := r.closer.Report(ctx, event, func(namespace string) bool {
		if r.found.told >= maxClosed || r.found.toldOf[namespace] >= maxClosedOf {
			return false
		}
		r.found.told++
		r.found.toldOf[namespace]++
		return true
	})
	if err != nil {
		logging.FromContext(ctx).Errorw("Not reported: what a GitEvent has given up", "event", event.Name, "error", err)
		r.metrics.skipped(ctx, r.phases[r.at.phase].name)
	}
	return nil
}

// closeRun leaves out the runs of open events, which are nearly all. Why a check could not be
// closed is not tried again in this pass: a Git service may hang, and nothing else is swept
// meanwhile.
func (r *Reconciler) closeRun(ctx context.Context, run *metav1.PartialObjectMetadata) error {
	if r.open(run.Labels[plumbline.EventLabel]) || !r.looks.may(run) || r.found.askedOf[run.Namespace] >= maxClosedOf {
		return nil
	}
	looked, asked, err := r.closer.Close(ctx, run)
	if asked {
		r.found.asked++
		r.found.askedOf[run.Namespace]++
	}
	if r.found.asked >= maxClosed {
		r.looks.end()
	}
	if looked {
		r.looks.took(run)
	}
	if err != nil {
		logging.FromContext(ctx).
			Errorw("Not closed: the check of a PipelineRun without a GitEvent", "namespace", run.Namespace, "run", run.Name, "error", err)
		r.metrics.skipped(ctx, r.phases[r.at.phase].name)
	}
	return nil
}

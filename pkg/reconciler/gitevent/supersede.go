// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// reasonSuperseded ends what waited while Git got another commit in the event's place (B11).
const reasonSuperseded = "Superseded"

// superseding returns the commit that has taken the event's place, "" while none has. Git is asked only if the step has
// waited before.
func (w *work) superseding(ctx context.Context, step string) (string, error) {
	spec := w.event.Spec
	if w.planned() {
		spec.SHA = w.event.Status.Plan.HeadSHA
	}
	return w.session.Superseding(ctx, &spec, w.wait(step) != nil)
}

func supersededBy(sha string) string { return "superseded by " + sha }

// giveUp returns a fault that judge turns into a cancellation if the run was superseded while it waited to be created. A
// create that landed although its answer was lost is not undone: what exists is adopted and reported.
func (r *Reconciler) giveUp(ctx context.Context, w *work, run *v1alpha1.Run) error {
	sha, err := w.superseding(ctx, stepCreate+run.Name)
	if sha == "" || err != nil {
		return err
	}
	_, err = r.tekton.PipelineRuns(run.Namespace).Get(ctx, run.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return fault.Ignoredf(reasonSuperseded, "%s", supersededBy(sha))
	}
	if err != nil {
		return fault.FromKube(fault.VerbRead, fmt.Errorf("looking for PipelineRun %s/%s: %w", run.Namespace, run.Name, err))
	}
	return nil
}

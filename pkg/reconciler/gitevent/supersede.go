// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// reasonSuperseded ends what waited while Git got another commit in the event's place (B11).
const reasonSuperseded = "Superseded"

// superseding returns the commit that has taken the event's place, "" while none has. Git is asked once a reconcile, and
// only if the step has waited before: an event that nothing stops costs no call, and what it starts is true when it starts.
func (w *work) superseding(ctx context.Context, step string) (string, error) {
	if w.newer == nil && w.wait(step) == nil {
		return "", nil
	}
	event := w.event.Spec.DeepCopy()
	if w.planned() {
		event.SHA = w.event.Status.Plan.HeadSHA
	}
	if event.SHA == "" { // a comment that is not planned yet: it is about the head of that moment
		return "", nil
	}
	if w.newer == nil {
		w.newer = sync.OnceValues(func() (string, error) {
			client, err := w.connect(ctx)
			if err != nil {
				return "", err
			}
			sha, err := client.Supersedes(ctx, event)
			if err != nil {
				return "", fmt.Errorf("asking what has superseded commit %s: %w", event.SHA, err)
			}
			if sha == event.Before { // a replica of the Git service has not heard of the push yet
				return "", nil
			}
			return sha, nil
		})
	}
	return w.newer()
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

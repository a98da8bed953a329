// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// giveUp returns a fault that judge turns into a cancellation if the run was superseded while it
// waited to be created. A create that landed although its answer was lost is not undone: what
// exists is adopted and reported.
func (s *Step) giveUp(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) error {
	sha, err := a.Superseding(ctx, v1alpha1.StepCreate+run.Name)
	if sha == "" || err != nil {
		return err
	}
	_, err = s.Tekton.PipelineRuns(run.Namespace).Get(ctx, run.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return fault.Ignoredf(attempt.ReasonSuperseded, "%s", attempt.SupersededBy(sha))
	}
	if err != nil {
		return fault.FromKube(fault.VerbRead, fmt.Errorf("looking for PipelineRun %s/%s: %w", run.Namespace, run.Name, err))
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// cancelled returns a fault that judge turns into a cancellation of a run that is not to be created
// any more. One that is there all the same, because an earlier create landed and nobody recorded
// it, is the event's run, and pkg/reconciler/gitevent/cancel ends it.
func (s *Step) cancelled(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, why *v1alpha1.Cancellation) error {
	if err := a.Record.Confirm(ctx); err != nil { // another process may be about to create it
		return err
	}
	found, err := s.Tekton.PipelineRuns(run.Namespace).Get(ctx, run.Name, metav1.GetOptions{})
	if err != nil && !fault.Gone(err) {
		return fault.FromKube(fault.VerbRead, fmt.Errorf("looking for PipelineRun %s/%s: %w", run.Namespace, run.Name, err))
	}
	ours := a.Event.Namespace + "/" + a.Event.Name + "/" // what the event's run keys begin with
	if err != nil || !strings.HasPrefix(found.Annotations[plumbline.RunKeyAnnotation], ours) {
		return fault.Ignoredf(attempt.ReasonCancelled, "cancelled: %s", why.Why)
	}
	run.UID = found.UID
	s.made(a, found)
	return nil
}

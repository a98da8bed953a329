// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// patch repeats the patches of a run that a settled event has given up after an hour of refusals:
// the id of its check, and that its end was accepted. After each attempt the run backs off like one
// whose check is not closed (docs/adr/0003).
func (c *Closer) patch(ctx context.Context, event *v1alpha1.GitEvent, run *metav1.PartialObjectMetadata) error {
	service, known := provider.For(c.Providers, &event.Spec)
	of := recorded(event, run)
	if !event.Settled() || event.Status.Unreported || of == nil || !known {
		return nil
	}
	c.backOff(string(run.UID), retryAtMost)
	key := of.Status.Runs[0].Key()
	id, at := "", slices.IndexFunc(event.Status.Checks, func(c v1alpha1.Check) bool { return c.Key == key })
	if at >= 0 {
		id = event.Status.Checks[at].ID
	}
	labelled := &v1alpha1.Run{Namespace: run.Namespace, Name: run.Name, WithoutState: withoutState(run)}
	if err := c.labelReported(ctx, service, labelled, id); err != nil {
		return fmt.Errorf("for settled GitEvent %s: %w", event.Name, err)
	}
	if at < 0 {
		return nil
	}
	event.Status.Checks = slices.Delete(event.Status.Checks, at, at+1)
	if len(event.Status.Checks) == 0 {
		event.MarkTrue(v1alpha1.GitEventAnnotated, "", "")
	}
	_, err := c.Events.UpdateStatus(ctx, event, metav1.UpdateOptions{})
	return unlessGone("recording the patch of PipelineRun "+run.Namespace+"/"+run.Name, err)
}

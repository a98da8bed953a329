// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"slices"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// release concludes the checks of PaC's finished runs and removes its finalizer from them, and from
// runs of Plumbline that PaC has taken for its own. A conclusion is written before the run is
// changed, so that a process that is killed between both does both again.
func (f *Finish) release(ctx context.Context, found *pac.Installation) error {
	conclude, err := f.newConcluder(ctx, found)
	if err != nil {
		return err
	}
	left, err := f.left(ctx)
	if err != nil {
		return err
	}
	f.say("%d PipelineRuns have something of Pipelines-as-Code. Removing it ...", len(left)) // some 50 a second
	concluded, released, failed := 0, 0, 0
	var wait time.Duration
	for _, run := range left {
		closed, err := f.concludes(ctx, conclude, run)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !f.LeaveChecks {
			failed++
			wait = max(wait, fault.Of(err).RetryAfter)
			continue
		}
		if closed {
			concluded++
		}
		released++
		if err := f.releaseRun(ctx, run, closed); err != nil {
			return err
		}
	}
	f.say("Concluded the checks of %d PipelineRuns of Pipelines-as-Code, unless they had a conclusion. "+
		"%d PipelineRuns can be deleted now.", concluded, released)
	if failed == 0 {
		return nil
	}
	when := ""
	if wait > 0 {
		when = fmt.Sprintf(" in %s", wait.Round(time.Second))
	}
	return fmt.Errorf(
		"%d checks could not be concluded: run the command again%s, or add --leave-checks to leave them as they are",
		failed, when,
	)
}

// left returns the finished runs that have something of PaC, the newest first: where the Git
// service shows one status for all runs of a pipeline, that of the newest one counts.
func (f *Finish) left(ctx context.Context) (all []*pipelinev1.PipelineRun, err error) {
	err = f.eachRun(ctx, metav1.NamespaceAll, func(run *pipelinev1.PipelineRun) {
		if unfinished(run) || !open(run) && !finalized(run) {
			return
		}
		if !open(run) { // only its finalizer is removed, and there may be thousands
			run = &pipelinev1.PipelineRun{ObjectMeta: run.ObjectMeta}
		}
		all = append(all, run)
	})
	slices.SortStableFunc(all, func(a, b *pipelinev1.PipelineRun) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	return all, err
}

// concludes concludes the check of a run if it may be open. It says why it cannot.
func (f *Finish) concludes(ctx context.Context, c *concluder, run *pipelinev1.PipelineRun) (bool, error) {
	if !open(run) {
		return false, nil
	}
	err := c.conclude(ctx, run, resultOf(run))
	if err != nil {
		f.say("The check of PipelineRun %s/%s may be open: %s", run.Namespace, run.Name, err)
	}
	return err == nil, err
}

// releaseRun removes PaC's finalizer, and marks a run whose check was concluded as completed, as
// PaC does.
func (f *Finish) releaseRun(ctx context.Context, run *pipelinev1.PipelineRun, closed bool) error {
	err := f.update(ctx, run, func(run *pipelinev1.PipelineRun) (map[string]any, error) {
		metadata := map[string]any{}
		if finalized(run) {
			metadata["finalizers"] = slices.DeleteFunc(slices.Clone(run.Finalizers),
				func(name string) bool { return name == finalizer })
		}
		if closed {
			state := map[string]string{pipelinesascode.State: pipelinesascode.StateCompleted}
			metadata["labels"], metadata["annotations"] = state, state
		}
		if len(metadata) == 0 {
			return nil, nil
		}
		return map[string]any{"metadata": metadata}, nil
	})
	if err != nil {
		return kube.Failed(fmt.Sprintf("releasing PipelineRun %s/%s", run.Namespace, run.Name), err)
	}
	return nil
}

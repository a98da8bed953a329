// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"encoding/json"
	"fmt"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// managed selects the PipelineRuns of both products.
const managed = pipelinesascode.ManagedByLabel + "=" + pipelinesascode.ManagedBy

// ofPaC reports whether a PipelineRun is PaC's. Plumbline's have a label of their own.
func ofPaC(run *pipelinev1.PipelineRun) bool { return run.Labels[plumbline.EventLabel] == "" }

// unfinished reports whether a PipelineRun is PaC's and may still finish. One that is being deleted
// does not.
func unfinished(run *pipelinev1.PipelineRun) bool {
	return ofPaC(run) && !run.IsDone() && run.DeletionTimestamp == nil
}

// page is how many PipelineRuns one call reads.
const page = 200

func (m *Migration) runs(namespace string) dynamic.ResourceInterface {
	return m.Cluster.Dynamic.Resource(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns")).Namespace(namespace)
}

// eachRun calls do for each PipelineRun of PaC and of Plumbline in a namespace, "" for all.
func (m *Migration) eachRun(ctx context.Context, namespace string, do func(*pipelinev1.PipelineRun)) error {
	err := kube.Pages(
		metav1.ListOptions{LabelSelector: managed, Limit: page},
		func(o metav1.ListOptions) (string, error) {
			list, err := m.runs(namespace).List(ctx, o)
			if err != nil {
				return "", err
			}
			for i := range list.Items {
				run, err := typed(&list.Items[i])
				if err != nil {
					return "", err
				}
				do(run)
			}
			return list.GetContinue(), nil
		},
	)
	if err != nil {
		return kube.Failed("listing the PipelineRuns", err)
	}
	return nil
}

func typed(object *unstructured.Unstructured) (*pipelinev1.PipelineRun, error) {
	run := &pipelinev1.PipelineRun{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, run); err != nil {
		return nil, fmt.Errorf("PipelineRun %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return run, nil
}

// unfinished returns PaC's PipelineRuns that have not finished.
func (m *Migration) unfinished(ctx context.Context, namespaces ...string) (all []*pipelinev1.PipelineRun, err error) {
	for _, namespace := range namespaces {
		err := m.eachRun(ctx, namespace, func(run *pipelinev1.PipelineRun) {
			if unfinished(run) {
				all = append(all, run)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// stillUnfinished returns those of the PipelineRuns that have not finished since they were read.
func (m *Migration) stillUnfinished(
	ctx context.Context, runs []*pipelinev1.PipelineRun,
) (left []*pipelinev1.PipelineRun, err error) {
	for _, run := range runs {
		switch run, err := m.reread(ctx, run); {
		case err == nil && unfinished(run):
			left = append(left, run)
		case err != nil && !apierrors.IsNotFound(err):
			return nil, kube.Failed("reading a PipelineRun", err)
		}
	}
	return left, nil
}

func (m *Migration) reread(ctx context.Context, run *pipelinev1.PipelineRun) (*pipelinev1.PipelineRun, error) {
	live, err := m.runs(run.Namespace).Get(ctx, run.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return typed(live)
}

// stateOf returns the word for the state of a PipelineRun that has not finished.
func stateOf(run *pipelinev1.PipelineRun) string {
	switch {
	case queued(run):
		return "queued"
	case run.IsCancelled() || run.IsGracefullyCancelled() || run.IsGracefullyStopped():
		return "being cancelled"
	case !run.HasStarted():
		return "pending"
	}
	return "running"
}

// queued reports whether a PipelineRun waits for its turn in PaC's queue.
func queued(run *pipelinev1.PipelineRun) bool { return run.IsPending() && !run.IsDone() }

func (m *Migration) list(title string, runs []*pipelinev1.PipelineRun) {
	m.say("%s:", title)
	for _, run := range runs {
		m.say("  %s/%s: %s", run.Namespace, run.Name, stateOf(run))
	}
}

// cancel cancels PipelineRuns; onlyQueued leaves those that have started meanwhile.
func (m *Migration) cancel(ctx context.Context, runs []*pipelinev1.PipelineRun, onlyQueued bool) error {
	for _, run := range runs {
		what := fmt.Sprintf("cancelling PipelineRun %s/%s", run.Namespace, run.Name)
		cancelled := false
		err := m.update(ctx, run, func(run *pipelinev1.PipelineRun) (map[string]any, error) {
			if cancelled = !run.IsDone() && (queued(run) || !onlyQueued); !cancelled || stateOf(run) == "being cancelled" {
				return nil, nil
			}
			how := pipelinev1.PipelineRunSpecStatusCancelledRunFinally
			if queued(run) { // it has nothing that finally tasks could clean up
				how = pipelinev1.PipelineRunSpecStatusCancelled
			}
			return map[string]any{"spec": map[string]any{"status": how}}, nil
		})
		if err != nil {
			return kube.Failed(what, err)
		}
		if cancelled {
			m.say("Cancelled PipelineRun %s/%s", run.Namespace, run.Name)
		}
	}
	return nil
}

// update patches a PipelineRun with what how returns; nil changes nothing. It reads the PipelineRun
// and calls how again if another client has changed it. A PipelineRun that is gone is no error.
func (m *Migration) update(
	ctx context.Context, run *pipelinev1.PipelineRun, how func(*pipelinev1.PipelineRun) (map[string]any, error),
) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		patch, err := how(run)
		if err != nil || patch == nil {
			return err
		}
		metadata, _ := patch["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
		}
		metadata["resourceVersion"] = run.ResourceVersion
		patch["metadata"] = metadata
		body, err := json.Marshal(patch)
		if err != nil {
			return err
		}
		_, err = m.runs(run.Namespace).Patch(ctx, run.Name, types.MergePatchType, body, metav1.PatchOptions{})
		if apierrors.IsConflict(err) {
			if live, err := m.reread(ctx, run); err == nil {
				run = live
			}
		}
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

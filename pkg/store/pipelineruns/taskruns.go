// SPDX-License-Identifier: Apache-2.0

package pipelineruns

import (
	"context"
	"strings"

	"github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
)

const (
	// taskRunPage is how many TaskRuns are decoded at once: each may have 1.5 MiB, etcd's limit.
	taskRunPage = 25
	// maxTaskRuns is how many are read of a run. Tekton has a reference to each in the PipelineRun,
	// and fewer references than that fit into an object. Users in the namespace may label other
	// TaskRuns as the run's.
	maxTaskRuns = 1000
	// maxMessage limits the bytes of a condition's message; no report has more.
	maxMessage = 32 << 10
	// maxContainers limits the steps and the sidecars of which the states are read.
	maxContainers = 100
)

// TaskRunsOf returns the TaskRuns of a PipelineRun with the fields that a report and its verdict
// need: names, the Task, when and how they, their retries and their containers finished. Fields
// without a limit are left out (S9).
func TaskRunsOf(ctx context.Context, client tektonv1.TaskRunInterface, run string) ([]*pipelinev1.TaskRun, error) {
	var taskRuns []*pipelinev1.TaskRun
	err := EachTaskRun(ctx, client, run,
		func(whole *pipelinev1.TaskRun) { taskRuns = append(taskRuns, trimTaskRun(whole)) })
	return taskRuns, err
}

// EachTaskRun calls do with the TaskRuns of a PipelineRun. do keeps none of them: a page of them is
// in memory at a time.
func EachTaskRun(
	ctx context.Context, client tektonv1.TaskRunInterface, run string, do func(whole *pipelinev1.TaskRun),
) error {
	options := metav1.ListOptions{LabelSelector: pipeline.PipelineRunLabelKey + "=" + run, Limit: taskRunPage}
	for left := maxTaskRuns; left > 0; {
		list, err := client.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items[:min(left, len(list.Items))] {
			do(&list.Items[i])
		}
		left -= len(list.Items)
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	return nil
}

func trimTaskRun(whole *pipelinev1.TaskRun) *pipelinev1.TaskRun {
	kept := &pipelinev1.TaskRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: whole.Namespace,
		Name:      whole.Name,
		UID:       whole.UID,
		Labels:    map[string]string{pipeline.PipelineTaskLabelKey: whole.Labels[pipeline.PipelineTaskLabelKey]},
	}}
	if ref := whole.Spec.TaskRef; ref != nil {
		kept.Spec.TaskRef = &pipelinev1.TaskRef{
			Name:        ref.Name,
			Kind:        ref.Kind,
			ResolverRef: pipelinev1.ResolverRef{Resolver: ref.Resolver},
		}
	}
	if whole.Spec.StatusMessage == pipelinev1.TaskRunCancelledByPipelineTimeoutMsg {
		kept.Spec.StatusMessage = whole.Spec.StatusMessage
	}
	kept.Status = trimStatus(&whole.Status)
	kept.Status.RetriesStatus = make([]pipelinev1.TaskRunStatus, len(whole.Status.RetriesStatus))
	for i := range whole.Status.RetriesStatus {
		kept.Status.RetriesStatus[i] = trimStatus(&whole.Status.RetriesStatus[i])
	}
	return kept
}

// trimStatus leaves out how the containers of a successful attempt ended.
func trimStatus(whole *pipelinev1.TaskRunStatus) (kept pipelinev1.TaskRunStatus) {
	kept.StartTime, kept.CompletionTime, kept.PodName = whole.StartTime, whole.CompletionTime, whole.PodName
	c := whole.GetCondition(apis.ConditionSucceeded)
	if c == nil {
		return kept
	}
	condition := *c
	condition.Message = text(c.Message)
	kept.Conditions = append(kept.Conditions, condition)
	if !c.IsFalse() {
		return kept
	}
	for _, step := range whole.Steps[:min(len(whole.Steps), maxContainers)] {
		kept.Steps = append(kept.Steps, pipelinev1.StepState{
			Name: step.Name, TerminationReason: step.TerminationReason, ContainerState: trimState(step.ContainerState),
		})
	}
	for _, sidecar := range whole.Sidecars[:min(len(whole.Sidecars), maxContainers)] {
		kept.Sidecars = append(kept.Sidecars, pipelinev1.SidecarState{
			Name: sidecar.Name, ContainerState: trimState(sidecar.ContainerState),
		})
	}
	if spec := whole.TaskSpec; spec != nil && len(kept.Sidecars) > 0 {
		kept.TaskSpec = &pipelinev1.TaskSpec{}
		for _, sidecar := range spec.Sidecars {
			kept.TaskSpec.Sidecars = append(kept.TaskSpec.Sidecars, pipelinev1.Sidecar{Name: sidecar.Name})
		}
	}
	return kept
}

func trimState(whole corev1.ContainerState) (kept corev1.ContainerState) {
	if t := whole.Terminated; t != nil {
		kept.Terminated = &corev1.ContainerStateTerminated{ExitCode: t.ExitCode, Reason: t.Reason}
	}
	if w := whole.Waiting; w != nil {
		kept.Waiting = &corev1.ContainerStateWaiting{Reason: w.Reason, Message: text(w.Message)}
	}
	if whole.Running != nil {
		kept.Running = &corev1.ContainerStateRunning{}
	}
	return kept
}

func text(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")
}

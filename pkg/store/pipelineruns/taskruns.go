// SPDX-License-Identifier: Apache-2.0

package pipelineruns

import (
	"context"
	"strings"

	"github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
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
)

// TaskRunsOf returns the TaskRuns of a PipelineRun with the fields that a report needs: names, the
// Task, when and how they finished, and how often they were retried. Fields without a limit are
// left out (S9).
func TaskRunsOf(ctx context.Context, client tektonv1.TaskRunInterface, run string) ([]*pipelinev1.TaskRun, error) {
	var taskRuns []*pipelinev1.TaskRun
	err := EachTaskRun(
		ctx,
		client,
		run,
		func(whole *pipelinev1.TaskRun) { taskRuns = append(taskRuns, trimTaskRun(whole)) },
	)
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
		Labels:    map[string]string{pipeline.PipelineTaskLabelKey: whole.Labels[pipeline.PipelineTaskLabelKey]},
	}}
	if ref := whole.Spec.TaskRef; ref != nil {
		kept.Spec.TaskRef = &pipelinev1.TaskRef{
			Name:        ref.Name,
			Kind:        ref.Kind,
			ResolverRef: pipelinev1.ResolverRef{Resolver: ref.Resolver},
		}
	}
	kept.Status.StartTime, kept.Status.CompletionTime = whole.Status.StartTime, whole.Status.CompletionTime
	kept.Status.RetriesStatus = make([]pipelinev1.TaskRunStatus, len(whole.Status.RetriesStatus))
	if c := whole.Status.GetCondition(apis.ConditionSucceeded); c != nil {
		condition := *c
		condition.Message = strings.ToValidUTF8(c.Message[:min(len(c.Message), maxMessage)], "")
		kept.Status.Conditions = append(kept.Status.Conditions, condition)
	}
	return kept
}

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
	// maxTaskRuns is how many are read of a run: Tekton keeps a reference to each in the
	// PipelineRun, of which fewer than that fit into an object. Anybody in the namespace may label
	// others so that they seem to be the run's.
	maxTaskRuns = 1000
	// maxMessage bounds the bytes of a condition's message; a report has no room for more.
	maxMessage = 32 << 10
)

// TaskRunsOf returns the TaskRuns of a PipelineRun for its report, as far as that needs them:
// names, the Task, when and how they ended, and how often they were retried. What has no bound is
// left out (S9).
func TaskRunsOf(ctx context.Context, client tektonv1.TaskRunInterface, run string) ([]*pipelinev1.TaskRun, error) {
	options := metav1.ListOptions{LabelSelector: pipeline.PipelineRunLabelKey + "=" + run, Limit: taskRunPage}
	var taskRuns []*pipelinev1.TaskRun
	for {
		list, err := client.List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			taskRuns = append(taskRuns, trimTaskRun(&list.Items[i]))
		}
		if options.Continue = list.Continue; options.Continue == "" || len(taskRuns) >= maxTaskRuns {
			return taskRuns[:min(len(taskRuns), maxTaskRuns)], nil
		}
	}
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

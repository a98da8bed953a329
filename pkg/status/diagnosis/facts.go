// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Facts are what the cluster says about the objects a failed run names.
type Facts struct {
	// TaskExists reports whether a Task exists, by its name or by "namespace/name"; an absent key
	// means that this was not looked up.
	TaskExists map[string]bool
	// Pods are the statuses of the Pods of TaskRuns for which NeedsPod is true, by the Pod's name. A
	// Pod that is gone or that may not be read is absent.
	Pods map[string]*corev1.PodStatus
}

// Failing lists the TaskRuns that made the run fail, the first to end first. Cancelled ones are a
// consequence and count only if there is nothing else; a failure that the pipeline ignores does not
// count.
func Failing(taskRuns []*pipelinev1.TaskRun) []*pipelinev1.TaskRun {
	var failed, cancelled []*pipelinev1.TaskRun
	for _, tr := range taskRuns {
		c := tr.Status.GetCondition(apis.ConditionSucceeded)
		switch {
		case !c.IsFalse() || c.Reason == pipelinev1.TaskRunReasonFailureIgnored.String():
		case c.Reason == pipelinev1.TaskRunReasonCancelled.String():
			cancelled = append(cancelled, tr)
		default:
			failed = append(failed, tr)
		}
	}
	if len(failed) == 0 {
		failed = cancelled
	}
	slices.SortStableFunc(failed, func(a, b *pipelinev1.TaskRun) int {
		return Earlier(EndedAt(a), EndedAt(b), a.Name, b.Name)
	})
	return failed
}

// EndedAt returns when a TaskRun finished. Tekton gives those that end with
// CreateContainerConfigError no completionTime.
func EndedAt(tr *pipelinev1.TaskRun) *metav1.Time {
	if c := tr.Status.GetCondition(apis.ConditionSucceeded); tr.Status.CompletionTime == nil && !c.IsUnknown() {
		return &c.LastTransitionTime.Inner
	}
	return tr.Status.CompletionTime
}

// TaskName returns the name of a TaskRun's task in its pipeline.
func TaskName(tr *pipelinev1.TaskRun) string {
	return cmp.Or(tr.Labels[pipeline.PipelineTaskLabelKey], tr.Name)
}

// OutcomeOf is empty unless the condition is terminal. Succeeded=False is a cancellation for
// Tekton's reason Cancelled, with which it ends cancelled and gracefully cancelled or stopped runs
// alike, and for the two reasons that older releases left on such a run while its finally tasks
// ran. Everything else that is False is a failure.
func OutcomeOf(condition *apis.Condition) v1alpha1.Outcome {
	if condition == nil {
		return ""
	}
	switch condition.Status {
	case corev1.ConditionTrue:
		return v1alpha1.OutcomeSucceeded
	case corev1.ConditionFalse:
	default:
		return ""
	}
	switch pipelinev1.PipelineRunReason(condition.Reason) {
	case pipelinev1.PipelineRunReasonCancelled, pipelinev1.PipelineRunReasonCancelledRunningFinally,
		pipelinev1.PipelineRunReasonStoppedRunningFinally:
		return v1alpha1.OutcomeCancelled
	}
	return v1alpha1.OutcomeFailed
}

// Earlier orders by time, what has none last, then by name.
func Earlier(a, b *metav1.Time, nameA, nameB string) int {
	switch {
	case a.IsZero() && !b.IsZero():
		return 1
	case !a.IsZero() && b.IsZero():
		return -1
	case !a.IsZero() && !a.Equal(b):
		return a.Compare(b.Time)
	}
	return strings.Compare(nameA, nameB)
}

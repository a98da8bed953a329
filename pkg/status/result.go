// SPDX-License-Identifier: Apache-2.0

package status

import (
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxMessage bounds the copy of Tekton's message in the GitEvent's status, in bytes.
const maxMessage = 8 << 10

// maxBrief is the maximum size of a result's Brief in bytes. GitLab shows less of it.
const maxBrief = 400

// maxCause is the maximum size of a result's Cause in bytes. It fits into a title.
const maxCause = 160

// Facts are what the cluster says about the objects a failed run names.
type Facts struct {
	// TaskExists reports whether a Task exists, by its name or by "namespace/name"; an absent key
	// means that this was not looked up.
	TaskExists map[string]bool
	// Pods are the statuses of the Pods of TaskRuns for which NeedsPod is true, by the Pod's name. A
	// Pod that is gone or that may not be read is absent.
	Pods map[string]*corev1.PodStatus
}

// ResultOf returns the terminal state of a PipelineRun, or nil while it has none: only its
// Succeeded condition counts, not what spec.status asks for. The text is the report's body, of at
// most maxText bytes (0: no limit): the task table and, for a failed run, the first failing task's
// name, Tekton's words and an explanation. taskRuns may be empty.
func ResultOf(
	pr *pipelinev1.PipelineRun, taskRuns []*pipelinev1.TaskRun, links Links, facts Facts, maxText int,
) *v1alpha1.Result {
	condition := pr.Status.GetCondition(apis.ConditionSucceeded)
	outcome := outcomeOf(condition)
	if outcome == "" {
		return nil
	}
	r := report{pr: pr, taskRuns: taskRuns, links: links, facts: facts, limit: maxText, outcome: outcome}
	diagnosis := Diagnose(pr, taskRuns, facts)
	return &v1alpha1.Result{
		Outcome:     outcome,
		Reason:      condition.Reason,
		Message:     shorten(condition.Message, " … (cut)", maxMessage),
		StartedAt:   pr.Status.StartTime.DeepCopy(),
		CompletedAt: pr.Status.CompletionTime.DeepCopy(),
		Text:        r.text(condition),
		Brief:       r.brief(condition, diagnosis),
		Verdict:     diagnosis.Verdict,
		Cause:       shorten(diagnosis.Cause, "…", maxCause),
	}
}

// outcomeOf is empty unless the condition is terminal. Succeeded=False is a cancellation for
// Tekton's reason Cancelled, with which it ends cancelled and gracefully cancelled or stopped runs
// alike, and for the two reasons that older releases left on such a run while its finally tasks
// ran. Everything else that is False is a failure.
func outcomeOf(condition *apis.Condition) v1alpha1.Outcome {
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

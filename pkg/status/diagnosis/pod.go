// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"slices"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"
)

// NeedsPod reports whether only the Pod of a failed TaskRun shows why it ended: a signal ended a
// step, and Tekton does not repeat that its node was shut down or that the Pod was preempted.
func NeedsPod(tr *pipelinev1.TaskRun) bool {
	return tr.Status.GetCondition(apis.ConditionSucceeded).IsFalse() && tr.Status.PodName != "" && killed(&tr.Status)
}

// killed reports whether a signal ended the step that failed.
func killed(s *pipelinev1.TaskRunStatus) bool {
	step := FailedStep(s)
	return step != nil && step.Terminated.Reason != "OOMKilled" && slices.Contains(signals(), step.Terminated.ExitCode)
}

// signals are the exit codes of steps that a signal ended, of which nothing says who sent it:
// SIGKILL, SIGTERM, and what Tekton's entrypoint exits with when a signal ends its child.
func signals() []int32 { return []int32{137, 143, 255} }

// StepFailed reports whether a step failed by itself. It did not if it was skipped, or if its
// errors are ignored.
func StepFailed(step *pipelinev1.StepState) bool {
	t, why := step.Terminated, step.TerminationReason
	return t != nil && (t.ExitCode != 0 || t.Reason == "OOMKilled") && why != "Skipped" && why != "Continued"
}

// FailedStep returns the first step that failed, or nil.
func FailedStep(s *pipelinev1.TaskRunStatus) *pipelinev1.StepState {
	for i := range s.Steps {
		if StepFailed(&s.Steps[i]) {
			return &s.Steps[i]
		}
	}
	return nil
}

// ofPod diagnoses a Pod that the control plane or the kubelet ended, from fields of its status. ok
// is false if none says so.
func ofPod(pod *corev1.PodStatus) (d Diagnosis, ok bool) {
	if pod == nil {
		return Diagnosis{}, false
	}
	reason := pod.Reason
	for _, c := range pod.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			reason = c.Reason
		}
	}
	switch reason {
	case corev1.PodReasonPreemptionByScheduler, "Preempting":
		return ofCluster(causePreempted), true
	case "DeletionByPodGC", "DeletionByTaintManager", "NodeLost":
		return ofCluster(causeNodeLost), true
	case "EvictionByEvictionAPI":
		return ofCluster(causeEvicted), true
	case corev1.PodReasonTerminationByKubelet, "NodeShutdown", "Shutdown", "Terminated":
		if pod.Reason == "Evicted" { // Tekton reports evictions, and which limit was exceeded
			return Diagnosis{}, false
		}
		return ofCluster(causeShutdown), true
	}
	return Diagnosis{}, false
}

// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// endsByItself reports whether a running pod is to end by itself: the pods of TaskRuns that are
// not held.
func endsByItself(pod *corev1.Pod) bool {
	ofTaskRun := func(owner metav1.OwnerReference) bool { return owner.Kind == "TaskRun" }
	return slices.ContainsFunc(pod.OwnerReferences, ofTaskRun) && pod.Annotations[HoldAnnotation] != "true"
}

// runningPod is the pod when its init containers are done and its containers run.
func runningPod(pod *corev1.Pod, now metav1.Time) *corev1.Pod {
	pod = pod.DeepCopy()
	status := &pod.Status
	status.Phase, status.StartTime = corev1.PodRunning, &now
	status.HostIP, status.PodIP = "127.0.0.1", "10.0.0.1"
	setConditions(status, corev1.PodCondition{Status: corev1.ConditionTrue, LastTransitionTime: now},
		corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady)
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
	for _, c := range pod.Spec.InitContainers {
		done := ended(c, corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now})
		done.Ready = true
		status.InitContainerStatuses = append(status.InitContainerStatuses, done)
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return pod
}

// finished is the pod after its end, as its annotations say. As with Tekton's entrypoint, the
// message of a step says when it started, and the steps after a failed one are skipped with exit
// code 1.
func finished(pod *corev1.Pod, now metav1.Time) *corev1.Pod {
	pod = pod.DeepCopy()
	status, code, failed := &pod.Status, exitCode(pod), false
	status.Phase = corev1.PodSucceeded
	if code != 0 {
		status.Phase = corev1.PodFailed
	}
	setConditions(status, corev1.PodCondition{
		Status: corev1.ConditionFalse, Reason: "PodCompleted", LastTransitionTime: now,
	},
		corev1.ContainersReady, corev1.PodReady)
	started := fmt.Sprintf(`{"key":"StartedAt","value":%q,"type":3}`, status.StartTime.UTC().Format(time.RFC3339))
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		state := corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: *status.StartTime, FinishedAt: now}
		if strings.HasPrefix(c.Name, "step-") {
			state.Message = "[" + started + "]"
			switch {
			case failed:
				state.Reason, state.ExitCode = "Error", 1
				state.Message = "[" + started + `,{"key":"Reason","value":"Skipped","type":3}]`
			case code != 0:
				state.Reason, state.ExitCode, failed = "Error", code, true
			}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, ended(c, state))
	}
	return pod
}

// exitCode returns that of the pod's first step.
func exitCode(pod *corev1.Pod) int32 {
	code, _ := strconv.ParseInt(pod.Annotations[ExitCodeAnnotation], 10, 32) // none is 0
	return int32(code)
}

func ended(c corev1.Container, how corev1.ContainerStateTerminated) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, Started: new(false), State: corev1.ContainerState{Terminated: &how},
	}
}

// setConditions gives every one of these types the same condition.
func setConditions(status *corev1.PodStatus, condition corev1.PodCondition, all ...corev1.PodConditionType) {
	status.Conditions = slices.DeleteFunc(status.Conditions,
		func(c corev1.PodCondition) bool { return slices.Contains(all, c.Type) })
	for _, condition.Type = range all {
		status.Conditions = append(status.Conditions, condition)
	}
}

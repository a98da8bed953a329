// SPDX-License-Identifier: Apache-2.0

package verdicts

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// change writes a pod's status as a kubelet or another part of Kubernetes does.
type change func(pod *corev1.Pod)

func terminated(code int32, reason, message string) corev1.ContainerState {
	now := metav1.Now()
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message, StartedAt: now, FinishedAt: now,
	}}
}

func waits(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func runs() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
}

// containers writes the state of each container; those that states does not name have completed.
func containers(phase corev1.PodPhase, states map[string]corev1.ContainerState) change {
	return func(pod *corev1.Pod) {
		status := func(name, image string) corev1.ContainerStatus {
			state, named := states[name]
			if !named {
				state = terminated(0, "Completed", "")
			}
			return corev1.ContainerStatus{Name: name, Image: image, State: state, Ready: state.Running != nil}
		}
		pod.Status.Phase, pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = phase, nil, nil
		for _, c := range pod.Spec.InitContainers {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status(c.Name, c.Image))
		}
		for _, c := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status(c.Name, c.Image))
		}
	}
}

// succeeds ends each container with 0.
func succeeds() change { return containers(corev1.PodSucceeded, nil) }

// ends is a pod of which one container ended in this way.
func ends(container string, code int32, reason, message string) change {
	return containers(corev1.PodFailed, map[string]corev1.ContainerState{container: terminated(code, reason, message)})
}

// stays is a pod with a container in a state that does not end by itself.
func stays(phase corev1.PodPhase, container string, state corev1.ContainerState) change {
	return containers(phase, map[string]corev1.ContainerState{container: state})
}

// because gives the pod itself a reason.
func because(of change, reason, message string) change {
	return func(pod *corev1.Pod) {
		of(pod)
		pod.Status.Reason, pod.Status.Message = reason, message
	}
}

// rejected is a pod that the kubelet did not admit: it has no containers.
func rejected(reason, message string) change {
	return func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, reason, message
	}
}

// unschedulable is a pod that the scheduler finds no node for.
func unschedulable(message string) change {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		}}
	}
}

// backOff is a step whose image the kubelet stopped pulling for a while, with containerd's words.
func backOff(words string) change {
	const image = "registry.example.com/team/app:1"
	return stays(corev1.PodPending, "step-test", waits("ImagePullBackOff", fmt.Sprintf(
		`Back-off pulling image %q: ErrImagePull: failed to pull and unpack image %q: %s`, image, image,
		strings.ReplaceAll(words, "IMAGE", image))))
}

// result is what Tekton's entrypoint leaves in the termination message.
func result(key, value string) string {
	return fmt.Sprintf(
		`[{"key":"StartedAt","value":"2026-01-02T03:04:05.000Z","type":3},{"key":%q,"value":%q,"type":3}]`,
		key,
		value,
	)
}

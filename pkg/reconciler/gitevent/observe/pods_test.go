// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// The Pod of a TaskRun is read only if a signal ended a step, and is used only if the TaskRun owns
// it. A missing permission changes nothing; an outage is retried.
func TestPodIsReadOnlyForKilledSteps(t *testing.T) {
	killed := &pipelinev1.TaskRun{ObjectMeta: metav1.ObjectMeta{Name: "unit", Namespace: "team", UID: "1"}}
	killed.Status.PodName = "unit-pod"
	killed.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse})
	killed.Status.Steps = []pipelinev1.StepState{{ContainerState: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137},
	}}}
	pod := func(owner *pipelinev1.TaskRun) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "unit-pod", Namespace: "team",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, schema.GroupVersionKind{Kind: "TaskRun"})}}}
	}
	other := killed.DeepCopy()
	other.UID = "2"
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "unit-pod", nil)
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "unit-pod")
	exit := killed.DeepCopy()
	exit.Status.Steps[0].Terminated.ExitCode = 1
	cases := map[string]struct {
		run   *pipelinev1.TaskRun
		pod   *corev1.Pod
		err   error
		found int
		again bool
	}{
		"its own Pod":         {killed, pod(killed), nil, 1, false},
		"another TaskRun's":   {killed, pod(other), nil, 0, false},
		"no Pod":              {killed, pod(killed), gone, 0, false},
		"no right":            {killed, pod(killed), forbidden, 0, false},
		"an outage":           {killed, pod(killed), apierrors.NewInternalError(context.Canceled), 0, true},
		"an ordinary failure": {exit, pod(exit), apierrors.NewInternalError(context.Canceled), 0, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset(c.pod)
			if c.err != nil {
				kube.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, c.err
				})
			}
			pods, err := podsOf(t.Context(), kube.CoreV1(), []*pipelinev1.TaskRun{c.run})
			if len(pods) != c.found || fault.Is(err, fault.Transient) != c.again {
				t.Errorf("%d Pods, %v", len(pods), err)
			}
		})
	}
}

// Many tasks whose Pods are gone cost few requests.
func TestFewPodsAreReadForOneResult(t *testing.T) {
	kube, taskRuns := fake.NewClientset(), []*pipelinev1.TaskRun(nil)
	for i := range 3 * maxPods {
		taskRun := &pipelinev1.TaskRun{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("task-", i), Namespace: "team"}}
		taskRun.Status.PodName = taskRun.Name + "-pod"
		taskRun.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse})
		taskRun.Status.Steps = []pipelinev1.StepState{{ContainerState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 137},
		}}}
		taskRuns = append(taskRuns, taskRun)
	}
	if _, err := podsOf(t.Context(), kube.CoreV1(), taskRuns); err != nil || len(kube.Actions()) != maxPods {
		t.Errorf("%d requests, %v, want %d", len(kube.Actions()), err, maxPods)
	}
}

// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The verdict on a step that a signal ended is unknown, unless the status of its Pod says who sent
// the signal.
func TestPodSaysWhoEndedAStep(t *testing.T) {
	disrupted := func(reason string) *corev1.PodStatus {
		return &corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason},
		}}
	}
	cases := map[string]struct {
		exit    int32
		reason  string
		pod     *corev1.PodStatus
		needs   bool
		verdict v1alpha1.Verdict
		title   string
	}{
		"an ordinary exit code needs no Pod": {1, "Error", nil, false, v1alpha1.VerdictAuthor,
			"Failed: step `test` of task `unit` exited with code 1"},
		"no Pod": {137, "Error", nil, true, v1alpha1.VerdictUnknown,
			"Failed: step `test` of task `unit` exited with code 137"},
		"a Pod without a reason": {143, "Error", &corev1.PodStatus{Phase: corev1.PodFailed}, true, v1alpha1.VerdictUnknown,
			"Failed: step `test` of task `unit` exited with code 143"},
		"memory is the author's": {137, "OOMKilled", nil, false, v1alpha1.VerdictAuthor,
			"Failed: step `test` of task `unit` ran out of memory"},
		"shut down": {143, "Error", &corev1.PodStatus{Reason: "Terminated"}, true, v1alpha1.VerdictInfrastructure,
			"Cluster problem: node shut down. Your change is not the cause."},
		"shut down, by its condition": {143, "Error", disrupted(corev1.PodReasonTerminationByKubelet), true,
			v1alpha1.VerdictInfrastructure, "Cluster problem: node shut down. Your change is not the cause."},
		"preempted": {137, "Error", disrupted(corev1.PodReasonPreemptionByScheduler), true, v1alpha1.VerdictInfrastructure,
			"Cluster problem: pod preempted. Your change is not the cause."},
		"node lost": {137, "Error", disrupted("DeletionByPodGC"), true, v1alpha1.VerdictInfrastructure,
			"Cluster problem: node lost. Your change is not the cause."},
		"drained": {137, "Error", disrupted("EvictionByEvictionAPI"), true, v1alpha1.VerdictInfrastructure,
			"Cluster problem: pod evicted. Your change is not the cause."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tr := &pipelinev1.TaskRun{}
			tr.Labels = map[string]string{"tekton.dev/pipelineTask": "unit"}
			tr.Status.PodName = "unit-pod"
			tr.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse,
				Reason: "StepFailed", Message: `"step-test" exited with code`})
			tr.Status.Steps = []pipelinev1.StepState{{Name: "test", ContainerState: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: c.exit, Reason: c.reason},
			}}}
			if got := NeedsPod(tr); got != c.needs {
				t.Errorf("NeedsPod = %v, want %v", got, c.needs)
			}
			pr := &pipelinev1.PipelineRun{}
			pr.Status.SetCondition(
				&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse, Reason: "Failed"},
			)
			d := Diagnose(pr, []*pipelinev1.TaskRun{tr}, Facts{Pods: map[string]*corev1.PodStatus{"unit-pod": c.pod}})
			if d.Verdict != c.verdict || Title(d.Verdict, d.Cause) != c.title {
				t.Errorf("%s: %s, want %s: %s", d.Verdict, Title(d.Verdict, d.Cause), c.verdict, c.title)
			}
		})
	}
}

// A title does not say that the change is not the cause, if the change may have requested more than
// a rule or a limit allows.
func TestTitleOfExceededLimitLeavesTheCauseOpen(t *testing.T) {
	for title, d := range map[string]Diagnosis{
		"Cluster problem: no quota was left for the pod of task `a`.": ofCluster(causeQuota, "the pod of task `a`"),
		"Cluster problem: no node had room for the pod of task `a`.":  ofCluster(causeUnschedulable, "`a`"),
		`Cluster problem: the admission webhook "w" refused the pod.`: ofCluster(causeRefused, `the admission webhook "w"`, "the pod"),
		"Cluster problem: node lost. Your change is not the cause.":   ofCluster(causeNodeLost),
	} {
		if got := Title(d.Verdict, d.Cause); got != title {
			t.Errorf("%s, want %s", got, title)
		}
	}
}

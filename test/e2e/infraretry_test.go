// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tekton "github.com/tektoncd/pipeline/pkg/apis/pipeline"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// A node evicts the pod of a task. Plumbline starts a second attempt by itself. The check has the
// result of that attempt and names both. A step that exits with a code is not started again.
func TestEvictedPodGetsAnotherAttempt(t *testing.T) {
	forBothServices(t, setup{receivers: 1, controllers: 1}, evictedPodGetsAnotherAttempt)
}

func evictedPodGetsAnotherAttempt(t *testing.T, env *environment) {
	sha := env.pushAccepted(map[string]string{
		".tekton/a.yaml": onTekton(pipeline("evicted", "push", held)),
		".tekton/b.yaml": onTekton(pipeline("exits", "push", fails)),
	})
	event := env.awaitRunsCreated(sha)
	first, exits := runName(event, "evicted"), runName(event, "exits")
	env.evict(first)
	var second string
	env.eventually(afterFault, "the second attempt exists", func() error {
		now := env.eventAt(sha)
		if second = runName(&now, "evicted"); second == first {
			return fmt.Errorf("the event has no other attempt than %s", first)
		}
		_, err := env.Tekton.TektonV1().PipelineRuns(env.ci).Get(env.ctx, second, metav1.GetOptions{})
		return err
	})
	env.eventually(soon, "the check says why it is in progress", func() error {
		check := env.awaitCheck(sha, checkName("evicted"), "in_progress", soon)
		if !check.Tells("Attempt 2 of 2: attempt 1 ended because of a cluster problem") {
			return fmt.Errorf("it says %+v", check)
		}
		return nil
	})
	env.must(env.Cluster.Release(env.ctx, env.ci, second))
	check := env.awaitCheck(sha, checkName("evicted"), "success", soon)
	if !check.Line && (!strings.Contains(check.Text, first) || !strings.Contains(check.Text, second)) {
		t.Errorf("the check does not name both attempts: %s", check.Text)
	}
	env.awaitCheck(sha, checkName("exits"), "failure", soon)
	env.awaitSettled(sha, soon)
	runs, err := env.Tekton.TektonV1().PipelineRuns(env.ci).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	attempts := map[string]string{}
	for _, run := range runs.Items {
		attempts[run.Name] = run.Labels[plumbline.AttemptLabel]
	}
	if len(attempts) != 3 || attempts[first] != "1" || attempts[second] != "2" || attempts[exits] != "1" {
		t.Errorf("the attempts are %v", attempts)
	}
	env.requireOneCheck(sha, checkName("evicted"))
	env.requireInvariants()
}

// evict does to the pods of a PipelineRun what a kubelet does when its node is low on memory.
func (env *environment) evict(run string) {
	env.t.Helper()
	env.eventually(soon, "the pod of "+run+" runs", func() error {
		pods, err := env.Kube.CoreV1().Pods(env.ci).List(env.ctx,
			metav1.ListOptions{LabelSelector: tekton.PipelineRunLabelKey + "=" + run})
		if err != nil || len(pods.Items) == 0 || pods.Items[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%d pods, not running: %w", len(pods.Items), err)
		}
		pod := pods.Items[0]
		pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
		pod.Status.Message = "The node was low on resource: memory."
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].Ready = false
			pod.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "Error", StartedAt: metav1.NewTime(time.Now()), FinishedAt: metav1.NewTime(time.Now()),
			}}
		}
		_, err = env.Kube.CoreV1().Pods(env.ci).UpdateStatus(env.ctx, &pod, metav1.UpdateOptions{})
		return err
	})
}

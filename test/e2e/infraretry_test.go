// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	tekton "github.com/tektoncd/pipeline/pkg/apis/pipeline"
	admission "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A node evicts the pod of a task, another node is lost, and an admission webhook refuses a pod.
// Plumbline starts a second attempt of each by itself. Each check has the result of that attempt
// and names both. A step that exits with a code is not started again.
func TestClusterFailureGetsAnotherAttempt(t *testing.T) {
	forBothServices(t, setup{receivers: 1, controllers: 1}, clusterFailureGetsAnotherAttempt)
}

func clusterFailureGetsAnotherAttempt(t *testing.T, env *environment) {
	env.refusePodsOf("refused")
	sha := env.pushAccepted(map[string]string{
		".tekton/evicted.yaml": onTekton(pipeline("evicted", "push", held)),
		".tekton/lost.yaml":    onTekton(pipeline("lost", "push", held)),
		".tekton/refused.yaml": onTekton(pipeline("refused", "push")),
		".tekton/exits.yaml":   onTekton(pipeline("exits", "push", fails)),
	})
	causes := map[string]string{"evicted": "pod evicted", "lost": "node lost", "refused": "policy.test"}
	first, want := map[string]string{}, map[string]string{}
	event := env.awaitRunsCreated(sha)
	for i := range event.Status.Runs {
		run := &event.Status.Runs[i]
		first[run.Pipeline], want[run.Key()] = run.Key(), "1"
	}
	env.endPod(first["evicted"], evict)
	env.endPod(first["lost"], loseNode)
	second := map[string]string{}
	for pipeline := range causes {
		second[pipeline] = env.awaitNextAttempt(sha, pipeline, first[pipeline])
		want[second[pipeline]] = "2"
	}
	for _, pipeline := range []string{"evicted", "lost"} { // the other one ends by itself
		env.eventually(soon, "the check says why it is in progress", func() error {
			check := env.awaitCheck(sha, checkName(pipeline), "in_progress", soon)
			if !check.Tells("Attempt 2 of 2: attempt 1 ended because of a cluster problem") {
				return fmt.Errorf("it says %+v", check)
			}
			return nil
		})
		env.must(env.Cluster.Release(env.ctx, env.ci, second[pipeline]))
	}
	for pipeline, cause := range causes {
		check := env.awaitCheck(sha, checkName(pipeline), "success", afterFault)
		if !check.Line && !containsAll(check.Text, first[pipeline], second[pipeline], cause) {
			t.Errorf("the check of %s does not name both attempts, or not %q: %s", pipeline, cause, check.Text)
		}
		env.requireOneCheck(sha, checkName(pipeline))
	}
	env.awaitCheck(sha, checkName("exits"), "failure", soon)
	env.awaitSettled(sha, soon)
	if got := env.attemptsOfRuns(); !maps.Equal(got, want) {
		t.Errorf("the attempts are %v, want %v", got, want)
	}
	env.requireInvariants()
}

// With concurrency_limit 1, another event waits until the second attempt is finished.
func TestNextAttemptKeepsTheOnlySlot(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	env.setLimit(env.ci, "app", 1)
	seen := env.newRunWatcher()
	one := env.pushAccepted(map[string]string{".tekton/run.yaml": onTekton(pipeline("one", "push", held))})
	first := runName(env.awaitRunsCreated(one), "one")
	two := env.pushAccepted(map[string]string{".tekton/run.yaml": onTekton(pipeline("two", "push"))})
	env.awaitQueue(1, 1)
	env.endPod(first, loseNode)
	second := env.awaitNextAttempt(one, "one", first)
	env.awaitQueue(1, 1)
	env.must(env.Cluster.Release(env.ctx, env.ci, second))
	env.awaitCheck(one, checkName("one"), "success", soon)
	env.awaitCheck(two, checkName("two"), "success", soon)
	env.awaitSeen(seen, 3)
	most, _, order := seen.snapshot()
	if want := []string{"one " + one, "one " + one, "two " + two}; most != 1 || !slices.Equal(order, want) {
		t.Errorf("%d at once, in the order %v, want one at once in the order %v", most, order, want)
	}
	env.awaitAllSettled(afterFault)
}

// awaitNextAttempt waits until a pipeline has another PipelineRun than the first, and returns its
// name.
func (env *environment) awaitNextAttempt(sha, pipeline, first string) (second string) {
	env.t.Helper()
	env.eventually(afterFault, "the second attempt of "+pipeline+" exists", func() error {
		now := env.eventAt(sha)
		if second = runName(&now, pipeline); second == first {
			return fmt.Errorf("the event has no other attempt than %s: %+v", first, resultOf(&now, pipeline))
		}
		_, err := env.Tekton.TektonV1().PipelineRuns(env.ci).Get(env.ctx, second, metav1.GetOptions{})
		return err
	})
	return second
}

func resultOf(event *v1alpha1.GitEvent, pipeline string) *v1alpha1.Result {
	for _, run := range event.Status.Runs {
		if run.Pipeline == pipeline {
			return run.Result
		}
	}
	return nil
}

// attemptsOfRuns returns the number in the label of each PipelineRun.
func (env *environment) attemptsOfRuns() map[string]string {
	env.t.Helper()
	runs, err := env.Tekton.TektonV1().PipelineRuns(env.ci).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	attempts := map[string]string{}
	for _, run := range runs.Items {
		attempts[run.Name] = run.Labels[plumbline.AttemptLabel]
	}
	return attempts
}

// endPod changes the status of the running pod of a PipelineRun.
func (env *environment) endPod(run string, change func(*corev1.PodStatus)) {
	env.t.Helper()
	env.eventually(soon, "the pod of "+run+" runs", func() error {
		pods, err := env.Kube.CoreV1().Pods(env.ci).List(env.ctx,
			metav1.ListOptions{LabelSelector: tekton.PipelineRunLabelKey + "=" + run})
		if err != nil || len(pods.Items) == 0 || pods.Items[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%d pods, not running: %w", len(pods.Items), err)
		}
		pod := pods.Items[0]
		change(&pod.Status)
		_, err = env.Kube.CoreV1().Pods(env.ci).UpdateStatus(env.ctx, &pod, metav1.UpdateOptions{})
		return err
	})
}

// evict is what a kubelet does when its node is low on memory.
func evict(pod *corev1.PodStatus) {
	pod.Phase, pod.Reason, pod.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
	for i := range pod.ContainerStatuses {
		pod.ContainerStatuses[i].Ready = false
		pod.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "Error", StartedAt: metav1.NewTime(time.Now()), FinishedAt: metav1.NewTime(time.Now()),
		}}
	}
}

// loseNode is what the pod garbage collector does when the node of a pod is gone. Nothing reports
// how the containers ended.
func loseNode(pod *corev1.PodStatus) {
	pod.Phase = corev1.PodFailed
	pod.Conditions = append(pod.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC",
		Message: "PodGC: node no longer exists", LastTransitionTime: metav1.NewTime(time.Now()),
	})
}

// refusePodsOf installs an admission webhook that refuses the pods of the first attempt of a
// pipeline, and waits until the API server asks it.
func (env *environment) refusePodsOf(pipeline string) {
	env.t.Helper()
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := admission.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admission.AdmissionResponse{
			UID: review.Request.UID, Result: &metav1.Status{Message: "images must be signed"},
		}
		_ = json.NewEncoder(w).Encode(review)
	}))
	env.t.Cleanup(webhook.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})
	labels := map[string]string{plumbline.AttemptLabel: "1", pipelinesascode.OriginalPRName: pipeline}
	fail, none := admissionv1.Fail, admissionv1.SideEffectClassNone
	configurations := env.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	created, err := configurations.Create(env.ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: env.policyName()},
		Webhooks: []admissionv1.ValidatingWebhook{
			{
				Name:                    "policy.test.plumbline.dev",
				FailurePolicy:           &fail,
				SideEffects:             &none,
				AdmissionReviewVersions: []string{"v1"},
				ClientConfig:            admissionv1.WebhookClientConfig{URL: &webhook.URL, CABundle: ca},
				NamespaceSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"kubernetes.io/metadata.name": env.ci},
				},
				ObjectSelector: &metav1.LabelSelector{MatchLabels: labels},
				Rules: []admissionv1.RuleWithOperations{{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}},
			},
		},
	}, metav1.CreateOptions{})
	env.must(err)
	env.t.Cleanup(func() { _ = configurations.Delete(context.Background(), created.Name, metav1.DeleteOptions{}) })
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
	}
	env.eventually(soon, "the API server asks the webhook", func() error {
		_, err := env.Kube.CoreV1().Pods(env.ci).Create(env.ctx, probe,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "images must be signed") {
			return fmt.Errorf("it says: %w", err)
		}
		return nil
	})
}

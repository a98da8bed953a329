// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// H4: during a node drain the API server evicts one of two receivers and one of two controllers.
// It evicts the other only when a replacement is ready. The pods are those of the Deployments in
// config/, in a namespace with its Pod Security level.
func TestNodeDrainLeavesOneReplica(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, setup{})
	for _, name := range []string{"plumbline-receiver", "plumbline-controller"} {
		first, second := env.startPod(name), env.startPod(name)
		env.eventually(soon, "one of the two may go", func() error { return env.evictPod(first) })
		env.eventually(soon, "the budget knows that it went", func() error {
			budget, err := env.Kube.PolicyV1().PodDisruptionBudgets(env.Namespace).Get(env.ctx, name, metav1.GetOptions{})
			if err == nil && (budget.Status.DisruptionsAllowed != 0 || len(budget.Status.DisruptedPods) != 0) {
				err = fmt.Errorf("it says %+v", budget.Status)
			}
			return err
		})
		if err := env.evictPod(second); !apierrors.IsTooManyRequests(err) {
			t.Errorf("evicting the last %s: %v, want 429", name, err)
		}
		env.startPod(name)
		env.eventually(soon, "the other may go when there is another one", func() error { return env.evictPod(second) })
	}
}

// startPod runs a pod of a Deployment of config/ and waits until it is ready.
func (env *environment) startPod(deployment string) string {
	env.t.Helper()
	d, err := installation.Deployment(deployment)
	env.must(err)
	pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	pod.GenerateName = deployment + "-"
	pods := env.Kube.CoreV1().Pods(env.Namespace)
	pod, err = pods.Create(env.ctx, pod, metav1.CreateOptions{})
	env.must(err)
	env.eventually(soon, "the pod is ready", func() error {
		found, err := pods.Get(env.ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("it is not")
	})
	return pod.Name
}

// evictPod asks for an eviction, as kubectl drain does.
func (env *environment) evictPod(pod string) error {
	return env.Kube.CoreV1().Pods(env.Namespace).EvictV1(env.ctx,
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: env.Namespace}})
}

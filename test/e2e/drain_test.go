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

// H4: while nodes are drained, the real API server lets one of two receivers and one of two
// controllers go, and the other only when another one is ready. The pods are those of config/'s
// Deployments, in a namespace with its Pod Security level.
func TestH4ANodeDrainLeavesOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	for _, name := range []string{"plumbline-receiver", "plumbline-controller"} {
		first, second := w.pod(name), w.pod(name)
		w.eventually(soon, "one of the two may go", func() error { return w.evict(first) })
		w.eventually(soon, "the budget knows that it went", func() error {
			budget, err := w.Kube.PolicyV1().PodDisruptionBudgets(w.Namespace).Get(w.ctx, name, metav1.GetOptions{})
			if err == nil && (budget.Status.DisruptionsAllowed != 0 || len(budget.Status.DisruptedPods) != 0) {
				err = fmt.Errorf("it says %+v", budget.Status)
			}
			return err
		})
		if err := w.evict(second); !apierrors.IsTooManyRequests(err) {
			t.Errorf("evicting the last %s: %v, want 429", name, err)
		}
		w.pod(name)
		w.eventually(soon, "the other may go when there is another one", func() error { return w.evict(second) })
	}
}

// pod runs a pod of a Deployment of config/ and waits until it is ready.
func (w *world) pod(deployment string) string {
	w.t.Helper()
	d, err := installation.Deployment(deployment)
	w.must(err)
	pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	pod.GenerateName = deployment + "-"
	pods := w.Kube.CoreV1().Pods(w.Namespace)
	pod, err = pods.Create(w.ctx, pod, metav1.CreateOptions{})
	w.must(err)
	w.eventually(soon, "the pod is ready", func() error {
		found, err := pods.Get(w.ctx, pod.Name, metav1.GetOptions{})
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

// evict asks as kubectl drain does.
func (w *world) evict(pod string) error {
	return w.Kube.CoreV1().Pods(w.Namespace).EvictV1(w.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: w.Namespace}})
}

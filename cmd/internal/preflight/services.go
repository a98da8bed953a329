// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// nameLabel is the label by which each Service of config/ selects pods. Its value is the name of
// the Deployment.
const nameLabel = "app.kubernetes.io/name"

// services checks whether each Service of the installation selects pods, and of one Deployment
// only. A Service that also selects another workload's pods loses deliveries silently.
func (c *Checker) services(ctx context.Context) []Finding {
	var all []Finding
	for i := range c.want.services {
		all = append(all, c.service(ctx, &c.want.services[i])...)
	}
	return all
}

func (c *Checker) service(ctx context.Context, want *corev1.Service) []Finding {
	remedy := func() string { return c.apply(ctx, "config/500-services.yaml") }
	object := fmt.Sprintf("Service %s/%s", c.Namespace, want.Name)
	service, err := c.kube.CoreV1().Services(c.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return []Finding{{Object: object, Problem: "does not exist", Remedy: remedy()}}
	}
	const rights = "get the Services and list the pods"
	if err != nil {
		return []Finding{c.unread(ctx, object, err, rights, roles)}
	}
	if len(service.Spec.Selector) == 0 {
		return []Finding{{Object: object, Problem: "has no selector", Remedy: remedy()}}
	}
	selector := labels.SelectorFromSet(service.Spec.Selector).String()
	pods, err := c.kube.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return []Finding{c.unread(ctx, object, err, rights, roles)}
	}
	meant := want.Spec.Selector[nameLabel]
	foreign, ours := map[string]bool{}, 0
	for i := range pods.Items {
		if owner := owner(&pods.Items[i]); owner != "Deployment "+meant {
			foreign[owner] = true
			continue
		}
		ours++
	}
	var all []Finding
	if ours == 0 {
		all = append(all, Finding{
			Object:  object,
			Problem: fmt.Sprintf("selects no pod of Deployment %s by %s", meant, selector),
			Remedy: fmt.Sprintf("check the Deployment (kubectl -n %s describe deployment %s); if the Service was changed: %s",
				c.Namespace, meant, remedy()),
		})
	}
	if len(foreign) != 0 {
		all = append(all, Finding{
			Object: object,
			Problem: fmt.Sprintf("selects foreign pods by %s and sends them a share of what is Deployment %s's: those of %s",
				selector, meant, strings.Join(slices.Sorted(maps.Keys(foreign)), ", ")),
			Remedy: "take these labels off them or move them to a namespace of their own; if the Service was changed: " + remedy(),
		})
	}
	return all
}

// owner returns the workload of a pod. A ReplicaSet is named after its Deployment and a hash, which
// is a label of its pods, so it need not be read.
func owner(pod *corev1.Pod) string {
	by := metav1.GetControllerOf(pod)
	if by == nil {
		return "Pod " + pod.Name
	}
	hash := pod.Labels["pod-template-hash"]
	if name, ok := strings.CutSuffix(by.Name, "-"+hash); ok && by.Kind == "ReplicaSet" && hash != "" {
		return "Deployment " + name
	}
	return by.Kind + " " + by.Name
}

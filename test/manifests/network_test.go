// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// policyOf is the one NetworkPolicy that selects a Deployment's pods: a second one would only add
// to what is allowed.
func (a *installation) policyOf(t *testing.T, deployment appsv1.Deployment) networkingv1.NetworkPolicy {
	t.Helper()
	var selecting []networkingv1.NetworkPolicy
	for _, policy := range a.networkPolicies {
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		must(t, err)
		if selector.Matches(labels.Set(deployment.Spec.Template.Labels)) {
			selecting = append(selecting, policy)
		}
	}
	if len(selecting) != 1 || selecting[0].Name != deployment.Name ||
		!selectsExactly(&selecting[0].Spec.PodSelector, deployment.Spec.Template.Labels) {
		t.Fatalf("NetworkPolicies %v select the pods of Deployment %s, want only its own, by its own label", selecting,
			deployment.Name)
	}
	return selecting[0]
}

func TestEachPodHasItsOwnNetworkPolicy(t *testing.T) {
	all := read(t)
	if len(all.networkPolicies) != len(all.deployments) {
		t.Errorf("%d NetworkPolicies for %d Deployments", len(all.networkPolicies), len(all.deployments))
	}
	for _, deployment := range all.deployments {
		policy := all.policyOf(t, deployment)
		if want := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress,
			networkingv1.PolicyTypeEgress}; !slices.Equal(policy.Spec.PolicyTypes, want) {
			t.Errorf("NetworkPolicy %s is about %v, want %v", policy.Name, policy.Spec.PolicyTypes, want)
		}
	}
}

// Who reaches which of a container's ports: deliveries come from anywhere, metrics are read in the
// cluster, and probes, which come from the node, need no rule.
func TestPodIngress(t *testing.T) {
	want := map[string]map[string]string{
		"plumbline-receiver":   {"http": "anywhere", "metrics": "pods"},
		"plumbline-controller": {"metrics": "pods"},
	}
	all := read(t)
	for _, deployment := range all.deployments {
		reached := map[string]string{}
		for _, rule := range all.policyOf(t, deployment).Spec.Ingress {
			if len(rule.Ports) == 0 {
				t.Errorf("NetworkPolicy %s: a rule without ports opens all of them", deployment.Name)
			}
			for _, port := range rule.Ports {
				if port.Port == nil || port.EndPort != nil || *port.Protocol != corev1.ProtocolTCP ||
					!hasPort(deployment.Spec.Template.Spec.Containers[0], *port.Port) {
					t.Fatalf("NetworkPolicy %s: %v is not a port that the container declares", deployment.Name, port)
				}
				reached[port.Port.StrVal] = from(t, rule.From)
			}
		}
		if diff := cmp.Diff(want[deployment.Name], reached); diff != "" {
			t.Errorf("Deployment %s (-want +got):\n%s", deployment.Name, diff)
		}
	}
}

func from(t *testing.T, peers []networkingv1.NetworkPolicyPeer) string {
	t.Helper()
	if len(peers) == 0 {
		return "anywhere"
	}
	for _, peer := range peers {
		if peer.IPBlock != nil || peer.NamespaceSelector == nil {
			t.Errorf("peer %v, want pods by their namespace", peer)
		}
	}
	return "pods"
}

// What a pod reaches: names, the API server, and for the controller Git services. Never port 80,
// where the metadata services of clouds are, and never every port.
func TestPodEgress(t *testing.T) {
	all := read(t)
	for _, deployment := range all.deployments {
		want := map[string]bool{"53/UDP": true, "53/TCP": true, "443/TCP": true, "6443/TCP": true}
		if deployment.Name == "plumbline-receiver" { // the Service of Pipelines-as-Code
			want["8080/TCP"], want["8082/TCP"] = true, true
		}
		got := map[string]bool{}
		for _, rule := range all.policyOf(t, deployment).Spec.Egress {
			if len(rule.Ports) == 0 {
				t.Errorf("NetworkPolicy %s: a rule without ports opens all of them", deployment.Name)
			}
			for _, port := range rule.Ports {
				got[port.Port.String()+"/"+string(*port.Protocol)] = true
			}
		}
		if !maps.Equal(want, got) {
			t.Errorf("Deployment %s reaches %v, want %v", deployment.Name, got, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// monitor is the part of a ServiceMonitor that config/monitoring uses, with the Prometheus
// Operator's names.
type monitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Interval string `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// Each ServiceMonitor finds the metrics of one Service: a Service that it selects besides has no
// port of that name.
func TestEachServiceMonitorFindsOnePort(t *testing.T) {
	all := read(t)
	found := map[string]bool{}
	for _, document := range documents(t, filepath.Join(config, "monitoring", "servicemonitors.yaml")) {
		var m monitor
		must(t, yaml.UnmarshalStrict(document, &m))
		selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
		if err != nil || len(m.Spec.Endpoints) != 1 || m.Namespace != namespace {
			t.Fatalf("ServiceMonitor %s/%s: %+v, %v; want one endpoint in the Services' namespace", m.Namespace, m.Name, m.Spec,
				err)
		}
		var ports []string
		for _, service := range all.services {
			if selector.Matches(labels.Set(service.Labels)) && slices.ContainsFunc(service.Spec.Ports,
				func(port corev1.ServicePort) bool { return port.Name == m.Spec.Endpoints[0].Port }) {
				ports = append(ports, service.Name)
			}
		}
		if len(ports) != 1 || ports[0] != m.Name+"-metrics" {
			t.Errorf("ServiceMonitor %s finds the port in %v, want in %s-metrics alone", m.Name, ports, m.Name)
		}
		found[m.Name] = true
	}
	for _, deployment := range all.deployments {
		if !found[deployment.Name] {
			t.Errorf("nothing reads the metrics of Deployment %s", deployment.Name)
		}
	}
}

// The Prometheus Operator finds the rules where everything is. What they say is read by
// hack/tools/promrules.
func TestRulesAreInPlumblinesNamespace(t *testing.T) {
	for _, document := range documents(t, filepath.Join(config, "monitoring", "prometheusrules.yaml")) {
		var rules metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &rules); err != nil || rules.Kind != "PrometheusRule" ||
			rules.Namespace != namespace || rules.Name == "" {
			t.Errorf("%s %s/%s, %v", rules.Kind, rules.Namespace, rules.Name, err)
		}
	}
}

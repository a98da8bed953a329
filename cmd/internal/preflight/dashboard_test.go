// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ingress(host, service string, tls bool) *networkingv1.Ingress {
	to := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: service}}
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "tekton-pipelines", Name: "dashboard"}}
	i.Spec.Rules = []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{
		HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Backend: to}}},
	}}}
	if tls {
		i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}}}
	}
	return i
}

func TestDashboardProposesTheURLOfAnIngress(t *testing.T) {
	for name, test := range map[string]struct {
		ingress *networkingv1.Ingress
		data    map[string]string
		want    string
	}{
		"found":                 {ingress: ingress("dash.example.com", "tekton-dashboard", true), want: `"https://dash.example.com"`},
		"without TLS":           {ingress: ingress("dash.example.com", "tekton-dashboard", false), want: `"http://dash.example.com"`},
		"another service":       {ingress: ingress("dash.example.com", "grafana", true)},
		"no certain host":       {ingress: ingress("*.example.com", "tekton-dashboard", true)},
		"no host":               {ingress: ingress("", "tekton-dashboard", true)},
		"configured":            {ingress: ingress("a.example.com", "tekton-dashboard", true), data: map[string]string{"tekton-dashboard-url": "https://b.example.com"}},
		"another console's URL": {ingress: ingress("a.example.com", "tekton-dashboard", true), data: map[string]string{"custom-console-url": "https://b.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			settings := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: "plumbline"},
				Data:       test.data,
			}
			c, _ := checker(t, test.ingress, settings)
			found := c.dashboard(t.Context())
			if (len(found) == 1) != (test.want != "") || len(found) == 1 && !strings.Contains(found[0].Remedy, test.want) {
				t.Errorf("found %v, want %q", found, test.want)
			}
		})
	}
}

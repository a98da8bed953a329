// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dashboardService is the Service of each release of the Tekton Dashboard.
const dashboardService = "tekton-dashboard"

// dashboard returns a finding if an Ingress leads to a Tekton Dashboard and no console is
// configured. An account that may not list Ingresses misses only this proposal.
func (c *Checker) dashboard(ctx context.Context) []Finding {
	settings, err := c.settings(ctx)
	if err != nil || settings.Console.Configured() {
		return nil // other checks report what this account may not read
	}
	all, err := c.kube.NetworkingV1().Ingresses("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for i := range all.Items {
		url := dashboardURL(&all.Items[i])
		if url == "" {
			continue
		}
		return []Finding{
			{
				Object: fmt.Sprintf("ConfigMap %s/%s", c.Namespace, c.configMap()),
				Problem: fmt.Sprintf(
					"names no console, so that checks have no links to runs, but Ingress %s/%s leads to a Tekton Dashboard",
					all.Items[i].Namespace, all.Items[i].Name,
				),
				Remedy: fmt.Sprintf(`kubectl -n %s patch configmap %s --type=merge -p '{"data":{"tekton-dashboard-url":"%s"}}'`,
					c.Namespace, c.configMap(), url),
			},
		}
	}
	return nil
}

// dashboardURL returns the address at which an Ingress serves the Tekton Dashboard, "" if it does
// not, or at no certain host.
func dashboardURL(ingress *networkingv1.Ingress) string {
	for _, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil || rule.Host == "" || rule.Host[0] == '*' {
			continue
		}
		for _, path := range rule.HTTP.Paths {
			if path.Backend.Service == nil || path.Backend.Service.Name != dashboardService {
				continue
			}
			if len(ingress.Spec.TLS) > 0 {
				return "https://" + rule.Host
			}
			return "http://" + rule.Host
		}
	}
	return ""
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// build does what `kustomize build` and `kubectl kustomize` do, with their load restrictions.
func build(t *testing.T, folder string) objects {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

// The base has all of config/, and nothing else.
func TestKustomizeBase(t *testing.T) {
	if diff := cmp.Diff(manifests(t), build(t, config)); diff != "" {
		t.Errorf("kubectl apply -f config/ (-) and -k config/ (+) differ:\n%s", diff)
	}
}

// Each overlay builds, and changes what its golden file shows.
func TestKustomizeOverlays(t *testing.T) {
	base := manifests(t)
	for _, name := range []string{"eks", "monitoring", "openshift"} {
		t.Run(name, func(t *testing.T) {
			golden(t, "kustomize-"+name+".yaml", base, build(t, "../../../kustomize/"+name))
		})
	}
}

// The overlays and the chart's examples of the same name agree.
func TestKustomizeAgreesWithChart(t *testing.T) {
	for name, keys := range map[string][]string{
		"openshift": {"NetworkPolicy plumbline/plumbline-receiver", "NetworkPolicy plumbline/plumbline-controller"},
		"eks":       {"Ingress plumbline/plumbline-receiver"},
	} {
		overlay, chart := build(t, "../../../kustomize/"+name), rendered(t, "-f", source+"/examples/"+name+".yaml")
		for _, key := range keys {
			if overlay[key] == nil {
				t.Errorf("%s: no %s", name, key)
			}
			if diff := cmp.Diff(overlay[key], chart[key]); diff != "" {
				t.Errorf("%s: the overlay (-) and the chart (+) differ in %s:\n%s", name, key, diff)
			}
		}
	}
	overlay := build(t, "../../../kustomize/monitoring")
	chart := rendered(t, "-f", values(t, "monitoring: {serviceMonitors: {enabled: true}, prometheusRules: {enabled: true}, dashboard: {enabled: true}}"))
	for _, key := range []string{
		"ServiceMonitor plumbline/plumbline-receiver", "ServiceMonitor plumbline/plumbline-controller",
		"PrometheusRule plumbline/plumbline", "ConfigMap plumbline/plumbline-dashboard",
	} {
		if diff := cmp.Diff(overlay[key], chart[key]); diff != "" || overlay[key] == nil {
			t.Errorf("monitoring: the overlay (-) and the chart (+) differ in %s:\n%s", key, diff)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
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

// The overlay of docs/install.md builds: the parts combine, and the images get their names.
func TestKustomizeOverlayOfThePage(t *testing.T) {
	dir := t.TempDir()
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(root, repository)
	if err != nil {
		t.Fatal(err)
	}
	text := block(t, "apiVersion: kustomize.config.k8s.io")
	text = strings.NewReplacer("github.com/plumbline-ci/plumbline//", relative+"/", "?ref=v0.1.0", "").Replace(text)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all := build(t, dir)
	for _, component := range []string{"receiver", "controller"} {
		if got, want := container(t, all, component)["image"], "ghcr.io/plumbline-ci/plumbline/"+component+":v0.1.0"; got != want {
			t.Errorf("the image is %v, want %s", got, want)
		}
	}
	for _, key := range []string{"Route plumbline/plumbline-receiver", "PrometheusRule plumbline/plumbline"} {
		if all[key] == nil {
			t.Errorf("no %s", key)
		}
	}
}

// The values of docs/install.md are valid.
func TestValuesOfThePage(t *testing.T) {
	for _, begin := range []string{"github:", "caCertificates:"} {
		rendered(t, "-f", values(t, block(t, begin)))
	}
}

// block is the block of YAML in docs/install.md that begins so.
func block(t *testing.T, begin string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, "../../../docs/install.md"), "```yaml\n"+begin)
	if !found {
		t.Fatalf("docs/install.md has no block that begins with %s", begin)
	}
	text, _, _ = strings.Cut(text, "```")
	return begin + text
}

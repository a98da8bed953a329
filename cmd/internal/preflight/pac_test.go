// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// With pipelines-as-code-url, Pipelines-as-Code runs on purpose. The preflight then names settings
// that contradict what runs.
func TestPipelinesAsCodeOnPurpose(t *testing.T) {
	both := []runtime.Object{
		deployment("pac", "pipelines-as-code-controller", nil), deployment("pac", "pipelines-as-code-watcher", nil),
	}
	for name, c := range map[string]struct {
		deployed   []runtime.Object
		url, serve string
		waits      int
		says       string // "" is nothing
		purpose    string
	}{
		"both run":                 {both, "http://pac:8080", "team-a", 0, "", "pipelines-as-code-url"},
		"without the key":          {both, "", "team-a", 2, "would adopt Plumbline's PipelineRuns", ""},
		"nothing is left for it":   {both, "http://pac:8080", "", 0, "plumb migrate finish", ""},
		"it does not run":          {nil, "http://pac:8080", "team-a", 0, "Pipelines-as-Code does not run in this cluster", ""},
		"the URL cannot be read":   {both, "pac:8080", "team-a", 0, "cannot be read", ""},
		"it does not run, nor has": {nil, "", "", 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			settings := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: "plumbline"},
				Data:       map[string]string{"pipelines-as-code-url": c.url, "serve-namespaces": c.serve},
			}
			checker, client := checker(t, append([]runtime.Object{settings}, c.deployed...)...)
			listsByName(client)
			waits, err := checker.RunningPaC(t.Context())
			if err != nil || len(waits) != c.waits {
				t.Errorf("waits for %v, %v", waits, err)
			}
			found := checker.pipelinesAsCode(t.Context())
			all := ""
			for _, f := range found {
				all += f.String() + "\n"
			}
			if !strings.Contains(all, c.says) || c.says == "" && all != "" || checker.onPurpose != c.purpose {
				t.Errorf("found %q, on purpose by %q", all, checker.onPurpose)
			}
		})
	}
}

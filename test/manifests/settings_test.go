// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/leaderelection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/observability"
	"sigs.k8s.io/yaml"

	settings "github.com/plumbline-ci/plumbline/pkg/config"
)

func (a *installation) configMap(t *testing.T, name string) map[string]string {
	t.Helper()
	i := slices.IndexFunc(a.configMaps, func(c corev1.ConfigMap) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no ConfigMap %s", name)
	}
	return a.configMaps[i].Data
}

func TestConfigMapsNamedInTheEnvironmentExist(t *testing.T) {
	all := read(t)
	for _, deployment := range all.deployments {
		seen := map[string]bool{}
		for _, env := range deployment.Spec.Template.Spec.Containers[0].Env {
			seen[env.Name] = true
			if strings.HasPrefix(env.Name, "CONFIG_") {
				all.configMap(t, env.Value)
			}
		}
		want := []string{"SYSTEM_NAMESPACE", "POD_NAME"}
		if deployment.Name == "plumbline-controller" {
			want = append(want, "CONFIG_LOGGING_NAME", "CONFIG_OBSERVABILITY_NAME", "CONFIG_LEADERELECTION_NAME")
		}
		for _, name := range want {
			if !seen[name] {
				t.Errorf("Deployment %s has no environment variable %s", deployment.Name, name)
			}
		}
	}
}

// What people copy from has every key, and says the default of each.
func TestSettingsExampleHasDefaults(t *testing.T) {
	data := read(t).configMap(t, settings.Name)
	if len(data) != 1 {
		t.Errorf("keys %v: one that is applied would undo what an administrator set", data)
	}
	var example map[string]string
	must(t, yaml.UnmarshalStrict([]byte(data["_example"]), &example))
	got, err := settings.New(example)
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(settings.Default(), got,
		cmp.AllowUnexported(settings.Console{}, settings.Owners{}, settings.Namespaces{}),
		cmp.Comparer(func(a, b *regexp.Regexp) bool { return a.String() == b.String() })); diff != "" {
		t.Errorf("the example is not the default (-default +example):\n%s", diff)
	}
	_, err = settings.New(map[string]string{"no-such-key": ""})
	if err == nil {
		t.Fatal("an unknown key is not reported")
	}
	_, allowed, _ := strings.Cut(err.Error(), "allowed: ")
	for _, key := range strings.Split(allowed, ", ") {
		if _, ok := example[key]; !ok {
			t.Errorf("key %s is not in the example", key)
		}
	}
}

func TestKnativeUnderstandsItsConfigMaps(t *testing.T) {
	all := read(t)
	if _, err := logging.NewConfigFromMap(all.configMap(t, "plumbline-config-logging")); err != nil {
		t.Error(err)
	}
	metrics, err := observability.NewFromMap(all.configMap(t, "plumbline-config-observability"))
	if err != nil || metrics.Metrics.Protocol != "prometheus" {
		t.Errorf("metrics: %+v, %v; want prometheus", metrics, err)
	}
	leases, err := leaderelection.NewConfigFromMap(all.configMap(t, "plumbline-config-leader-election"))
	must(t, err)
	want := &leaderelection.Config{
		Buckets: 10, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 3 * time.Second,
	}
	want.LeaseNamesPrefixMapping = leases.LeaseNamesPrefixMapping
	if diff := cmp.Diff(want, leases); diff != "" {
		t.Errorf("leader election (-want +got):\n%s", diff)
	}
}

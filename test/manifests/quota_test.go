// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	settings "github.com/plumbline-ci/plumbline/pkg/config"
)

// The optional quota is above the budgets of the receivers and the controller, and bounds both
// kinds.
func TestQuotaExceedsBudgets(t *testing.T) {
	var quota corev1.ResourceQuota
	all := documents(t, filepath.Join(config, "optional", "resourcequota.yaml"))
	if len(all) != 1 {
		t.Fatalf("%d documents, want one", len(all))
	}
	must(t, yaml.UnmarshalStrict(all[0], &quota))
	if quota.Kind != "ResourceQuota" || quota.Namespace != namespace {
		t.Errorf("%s in namespace %s, want a ResourceQuota in %s", quota.Kind, quota.Namespace, namespace)
	}
	standard := settings.Default()
	for resource, atLeast := range map[string]int{"gitevents": 10 * (standard.SettledCap + standard.Open.Events),
		"eventpayloads": 4 * standard.Open.Events} {
		hard, ok := quota.Spec.Hard[corev1.ResourceName("count/"+resource+"."+v1alpha1.SchemeGroupVersion.Group)]
		if got := hard.Value(); !ok || got < int64(atLeast) {
			t.Errorf("%d %s are allowed, want %d or more", got, resource, atLeast)
		}
	}
}

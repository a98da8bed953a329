// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	settings "github.com/plumbline-ci/plumbline/pkg/config"
)

// The quota is the net below the budgets: it has room for ten times what they leave by default, and holds both kinds.
func TestTheQuotaIsAboveTheBudgets(t *testing.T) {
	quotas, standard := read(t).quotas, settings.Default()
	if len(quotas) != 1 {
		t.Fatalf("%d quotas, want one", len(quotas))
	}
	for resource, atLeast := range map[string]int{"gitevents": 10 * (standard.SettledCap + standard.Open.Events), "eventpayloads": 4 * standard.Open.Events} {
		hard, ok := quotas[0].Spec.Hard[corev1.ResourceName("count/"+resource+"."+v1alpha1.SchemeGroupVersion.Group)]
		if got := hard.Value(); !ok || got < int64(atLeast) {
			t.Errorf("%d %s are allowed, want %d or more", got, resource, atLeast)
		}
	}
}

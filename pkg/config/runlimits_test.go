// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/config/podsecurity"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
)

// A typing error must not allow what was forbidden.
func TestBadRunLimitsKeepThePreviousOnes(t *testing.T) {
	before := Default()
	before.RunLimits = podsecurity.Limits{ServiceAccounts: []string{"builder"}, PodSecurity: podsecurity.Restricted}
	before.GitAllowed = egress.Hosts{"git.corp.example"}
	for key, value := range map[string]string{"run-service-accounts": "builder, Not One", "run-pod-security": "strict",
		"git-allowed-hosts": "https://x"} {
		data := map[string]string{"run-service-accounts": "builder", "run-pod-security": "restricted",
			"git-allowed-hosts": "git.corp.example", key: value}
		got, err := parse(data, before)
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v, want an error that names it", key, err)
		}
		if diff := cmp.Diff(before, got, whole); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}

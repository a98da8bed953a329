// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"
)

// What is missing or cannot be is said before any cluster is asked.
func TestACampaignSaysWhatIsMissing(t *testing.T) {
	for words, args := range map[string][]string{
		"--namespace and --repository say which":                nil,
		"both are needed":                                       {"--namespace=canary"},
		`--faults "etcd" is none of policy, secrets, pods`:      {"--namespace=canary", "--repository=app", "--faults=policy,etcd"},
		"are longer than nothing":                               {"--namespace=canary", "--repository=app", "--minutes=0"},
		"--deadline and --every are longer":                     {"--namespace=canary", "--repository=app", "--deadline=0s"},
		"plumb: the kubeconfig names no cluster":                {"--namespace=canary", "--repository=app"},
		"plumb campaign --help lists the flags":                 {"--seed=1"},
		"plumb: unknown command \"now\" for \"plumb campaign\"": {"now"},
	} {
		got := plumb(t.Context(), t.TempDir(), "", append([]string{"campaign"}, args...)...)
		if got.code != exitTool || got.out != "" || !strings.Contains(got.said, words) {
			t.Errorf("plumb campaign %v: exit %d, %q %q; want 2 and %q", args, got.code, got.out, got.said, words)
		}
	}
}

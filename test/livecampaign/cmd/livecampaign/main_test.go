// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// Wrong flags are refused before the cluster is asked.
func TestWrongFlagsAreRefused(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	for words, args := range map[string][]string{
		"--namespace and --repository name the canary": nil,
		"give both": {"--namespace=canary"},
		`no fault is called "etcd" (all: policy, secrets, po`: {
			"--namespace=canary", "--repository=app", "--faults=policy,etcd",
		},
		"must be above 0":                               {"--namespace=canary", "--repository=app", "--minutes=0"},
		"--deadline and --every must":                   {"--namespace=canary", "--repository=app", "--deadline=0s"},
		"livecampaign: the kubeconfig names no cluster": {"--namespace=canary", "--repository=app"},
		"flag provided but not defined: -seed":          {"--seed=1"},
		`"now" is not a flag`:                           {"now"},
	} {
		var out, said strings.Builder
		code := run(t.Context(), args, process{strings.NewReader(""), &out, &said})
		if code != exitUnjudged || out.String() != "" || !strings.Contains(said.String(), words) {
			t.Errorf("%v: exit %d, %q %q; want 2 and %q", args, code, out.String(), said.String(), words)
		}
	}
}

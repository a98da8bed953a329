// SPDX-License-Identifier: Apache-2.0

package incomingwebhook

import (
	"slices"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// A team whose targets are expensive must not slow down the receiver.
func TestTargetsHaveALimitedCost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target string
		times  int
		want   int // the rule of the branch, after so many of the target
	}{
		"usual globs":               {"feature/*-{a,b}", 100, 1},
		"usual expressions":         {`^v[0-9]+(\.[0-9]+)*$`, 200, 1},
		"too many globs":            {"*a*b*c*{d,e,f,g}{h,i,j,k}*", 2000, -1},
		"expensive expressions":     {"^(a?){200}b$", 2000, -1},
		"unreadable expressions":    {"^(a{1000}){1000}$", 2000, -1},
		"a branch with its name":    {"^(a?){200}b$", 2000, 2},
		"expressions that are read": {"^(a?){200}b$", 10, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := make([]pacv1alpha1.IncomingRule, 3)
			rules[0].Targets = slices.Repeat([]string{c.target}, c.times)
			rules[1].Targets, rules[2].Targets = []string{"rel*"}, []string{"name"}
			branch := "release-1.0"
			if c.want == 2 {
				branch = "name"
			}
			if got := Rule(rules, branch); got != c.want {
				t.Errorf("the branch gets rule %d, want %d", got, c.want)
			}
		})
	}
}

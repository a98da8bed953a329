// SPDX-License-Identifier: Apache-2.0

package incomingwebhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// A team whose targets are expensive must not slow down the receiver.
func TestTargetsHaveALimitedCost(t *testing.T) {
	t.Parallel()
	const branch = "release-1.0"
	for name, c := range map[string]struct {
		target string
		times  int
		want   int // the rule of the branch, after so many of the target
	}{
		"names of branches":       {"feature/login", 2000, 1},
		"usual globs":             {"feature/*-{a,b}", 60, 1},
		"usual expressions":       {`^v[0-9]+(\.[0-9]+)*$`, 30, 1},
		"an expensive expression": {"^(a?){50}b$", 2, 1},
		"too many globs":          {"*a*b*c*{d,e,f,g}{h,i,j,k}*", 2000, -1},
		"expensive expressions":   {"^(a?){200}b$", 2000, -1},
		"unreadable expressions":  {"^(a{1000}){1000}$", 2000, -1},
		"braces":                  {"release-{1.0,2.0}", 1, 0},
		"the branch's own name":   {branch, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := make([]pacv1alpha1.IncomingRule, 3)
			rules[0].Targets = slices.Repeat([]string{c.target}, c.times)
			rules[1].Targets, rules[2].Targets = []string{"rel*"}, []string{branch} // nothing is skipped to get there
			if got := Rule(rules, branch); got != c.want {
				t.Errorf("the branch gets rule %d, want %d", got, c.want)
			}
		})
	}
}

// A sender that repeats its request gets the same response.
func TestCheckParamsNamesTheFirstParam(t *testing.T) {
	t.Parallel()
	r := Request{Params: map[string]string{}}
	for n := range 8 {
		r.Params[fmt.Sprint("p", n)] = "x"
	}
	for range 10 {
		got := r.CheckParams(&pacv1alpha1.IncomingRule{})
		if got == nil || !strings.Contains(got.Message, "p0 is not allowed") {
			t.Fatalf("refused with %+v", got)
		}
	}
}

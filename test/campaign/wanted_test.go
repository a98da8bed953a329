// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// A long campaign reports when it killed a process, met a fault or accepted deliveries too seldom
// or never.
func TestLongCampaignReportsTooFewActs(t *testing.T) {
	enough := func() Report {
		r := Report{counts: map[string]int{answered(200): 300, answered(202): delivered - 300, answered(503): 7}}
		for what, least := range wanted() {
			r.counts[what] = least
		}
		return r
	}
	rare := gitHits(onGitHub, "secondary limit (429)")
	for _, c := range []struct {
		what, want string
		spoil      func(r *Report)
	}{
		{"enough", "", func(*Report) {}},
		{"one delivery too few", "1499 deliveries are answered 2xx, not 1500", func(r *Report) { r.counts[answered(202)]-- }},
		{"a process is killed too seldom", `49 of "kill -9 etcd", not 50`,
			func(r *Report) { r.counts[killsOf(cluster.Etcd)]-- }},
		{"a fault is met too seldom", `9 of "API server: slow", not 10`, func(r *Report) { r.counts[apiHits("slow")]-- }},
		{"a fault was never met", `0 of "` + rare + `", not 10`, func(r *Report) { delete(r.counts, rare) }},
		{"no process makes a call", "no process made the call: patch moon",
			func(r *Report) { r.Unmade = []string{"patch moon"} }},
	} {
		r := enough()
		c.spoil(&r)
		if lacks := strings.Join(r.Lacks(long), "; "); lacks != c.want {
			t.Errorf("%s: it lacks %q, want %q", c.what, lacks, c.want)
		}
	}
	if lacks := (Report{}).Lacks(long - 1); len(lacks) > 0 {
		t.Errorf("a short campaign lacks %q", lacks)
	}
}

// A kind of call that no process makes is reported.
func TestUnmadeCallsAreReported(t *testing.T) {
	made := []cluster.Call{
		{Verb: "update", Resource: "gitevents", Subresource: "status"}, {Verb: "patch", Resource: "gitevents"},
	}
	kinds := []call{{}, {"update", "gitevents", "status"}, {"patch", "gitevents", "status"}, {"patch", "gitevents", ""},
		{"patch", "gitevents", "status"}}
	if got := missing(kinds, made); !slices.Equal(got, []call{{"patch", "gitevents", "status"}}) {
		t.Errorf("no process makes %v, want patch gitevents/status alone", got)
	}
}

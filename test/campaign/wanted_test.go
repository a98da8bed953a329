// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// A long campaign that has killed a process, met a fault or accepted deliveries too seldom says so, one that never did included.
func TestALongCampaignThatDidTooLittleSaysSo(t *testing.T) {
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
		{"a process is killed too seldom", `49 of "kill -9 etcd", not 50`, func(r *Report) { r.counts[killsOf(cluster.Etcd)]-- }},
		{"a fault is met too seldom", `9 of "API server: slow", not 10`, func(r *Report) { r.counts[apiHits("slow")]-- }},
		{"a fault was never met", `0 of "` + rare + `", not 10`, func(r *Report) { delete(r.counts, rare) }},
		{"nobody makes a call", "nobody has made the call: patch moon", func(r *Report) { r.Unmade = []string{"patch moon"} }},
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

// A kind of call that nobody makes is found.
func TestCallsThatNobodyMakesAreFound(t *testing.T) {
	made := []cluster.Call{{Verb: "update", Resource: "gitevents", Subresource: "status"}, {Verb: "patch", Resource: "gitevents"}}
	kinds := []call{{}, {"update", "gitevents", "status"}, {"patch", "gitevents", "status"}, {"patch", "gitevents", ""}, {"patch", "gitevents", "status"}}
	if got := missing(kinds, made); !slices.Equal(got, []call{{"patch", "gitevents", "status"}}) {
		t.Errorf("nobody makes %v, want patch gitevents/status alone", got)
	}
}

// A call that nobody made in time has another turn when all have had one.
func TestACallThatNobodyMadeHasAnotherTurn(t *testing.T) {
	all := deadlyCalls()
	var o overdue
	if first := o.turn(Act{Nth: 3}); first.String() != all[3].String() {
		t.Fatalf("the turn is that of %v, want %v", first, all[3])
	}
	o.add(all[3])
	if next := o.turn(Act{Nth: 4}); next.String() != all[4].String() {
		t.Errorf("in the first round the turn is that of %v, want %v", next, all[4])
	}
	if again := o.turn(Act{Nth: len(all)}); again.String() != all[3].String() || again.when != all[3].when {
		t.Errorf("then it is that of %v, want %v", again, all[3])
	}
	if after := o.turn(Act{Nth: len(all)}); after.String() != all[0].String() {
		t.Errorf("then it is that of %v, want %v", after, all[0])
	}
}

// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// I-9 is about deliveries that were answered while receivers were replaced. It does not count
// those that a kill right afterwards cut off: GitHub records their times in whole seconds.
func TestRollingRestartFailuresAreReported(t *testing.T) {
	second := time.Now().Truncate(time.Second)
	c := &checker{stage: &stage{tally: newTally()}}
	c.stage.tally.rolled(second, second.Add(9800*time.Millisecond))
	for what, test := range map[string]struct {
		d      invariants.Delivery
		breaks bool
	}{
		"cut off in the middle": {invariants.Delivery{At: second.Add(5 * time.Second), Took: time.Second}, true},
		"refused in the middle": {
			invariants.Delivery{Code: 503, At: second.Add(5 * time.Second), Took: time.Second}, true,
		},
		"answered in the middle": {
			invariants.Delivery{Code: 202, At: second.Add(5 * time.Second), Took: time.Second}, false,
		},
		"503 after a receiver's wait": {
			invariants.Delivery{Code: 503, At: second.Add(5 * time.Second), Took: 4 * time.Second}, false,
		},
		"cut off, not heard in time":    {invariants.Delivery{At: second.Add(5 * time.Second), Took: 3 * time.Second}, false},
		"cut off in the second it ends": {invariants.Delivery{At: second.Add(9 * time.Second), Took: time.Second}, false},
		"sent before it began":          {invariants.Delivery{At: second.Add(time.Second), Took: 2 * time.Second}, false},
	} {
		if broken := c.failed(&invariants.Evidence{Deliveries: []invariants.Delivery{test.d}}); len(
			broken) > 0 != test.breaks {
			t.Errorf("%s: %v", what, broken)
		}
	}
}

// I-10 has two sides: a run that is never patched is reported anyway, and a run that may be
// patched is marked as reported in the end.
func TestReportedRunsAreMarked(t *testing.T) {
	free, denied := "run-0", "run-1"
	for ; refused(free); free += "0" {
	}
	for ; !refused(denied); denied += "1" {
	}
	for what, test := range map[string]struct {
		name   string
		marked bool
		result *v1alpha1.Result
		breaks bool
	}{
		"it is marked":                    {free, true, &v1alpha1.Result{}, false},
		"it runs":                         {free, false, nil, false},
		"its patches are refused":         {denied, false, &v1alpha1.Result{}, false},
		"it is reported and nothing more": {free, false, &v1alpha1.Result{}, true},
	} {
		e := &invariants.Evidence{
			Live:    []pipelinev1.PipelineRun{{ObjectMeta: metav1.ObjectMeta{Name: test.name, UID: "uid"}}},
			Planned: map[string]v1alpha1.Run{test.name: {Name: test.name, Result: test.result}},
		}
		if broken := unmarked(e, map[types.UID]bool{"uid": test.marked}); len(broken) > 0 != test.breaks {
			t.Errorf("%s: %v", what, broken)
		}
	}
}

// A result without a cause in the campaign is reported: no act deletes a PipelineRun, or an object
// that one needs.
func TestUnexplainedResultsAreReported(t *testing.T) {
	for what, test := range map[string]struct {
		run  v1alpha1.Run
		want string // invariant
	}{
		"it ended": {
			v1alpha1.Run{UID: "u", Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}}, "",
		},
		"it waits": {v1alpha1.Run{}, ""},
		"a newer one came before it": {
			v1alpha1.Run{Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled, Reason: attempt.ReasonSuperseded}}, "",
		},
		"it counts as deleted": {
			v1alpha1.Run{UID: "u", Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeDeleted}}, "I-5",
		},
		"it is given up": {
			v1alpha1.Run{Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled, Reason: attempt.ReasonGivenUp}}, "I-1",
		},
	} {
		got := ""
		for _, v := range unexplained(&invariants.Evidence{Planned: map[string]v1alpha1.Run{"p": test.run}}) {
			got += v.Invariant
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", what, got, test.want)
		}
	}
}

// A check may be posted again only after a look-up just before.
func TestRepeatedPostNeedsLookup(t *testing.T) {
	at := time.Unix(1000, 0)
	post := func(after time.Duration) invariants.Write {
		return invariants.Write{ExternalID: "p", SHA: "c", Name: "n of it", Creates: true, Applied: true, At: at.Add(after)}
	}
	look := func(name string, after time.Duration) forge.Request {
		return forge.Request{Route: forge.RouteCheckList, Path: "/repos/o/r/commits/c/check-runs",
			Query: "check_name=" + name, Time: at.Add(after)}
	}
	for what, test := range map[string]struct {
		writes []invariants.Write
		asked  []forge.Request
		breaks bool
	}{
		"it is posted once": {[]invariants.Write{post(0)}, nil, false},
		"it was looked for": {
			[]invariants.Write{post(0), post(2 * time.Second)}, []forge.Request{look("n+of+it", time.Second)}, false,
		},
		"no look-up": {[]invariants.Write{post(0), post(2 * time.Second)}, nil, true},
		"another one was looked for": {
			[]invariants.Write{post(0), post(2 * time.Second)}, []forge.Request{look("m", time.Second)}, true,
		},
		"it was looked for long before": {
			[]invariants.Write{post(0), post(time.Hour)}, []forge.Request{look("n+of+it", time.Second)}, true,
		},
		"the first was not applied": {
			[]invariants.Write{{ExternalID: "p", SHA: "c", Creates: true, At: at}, post(time.Second)}, nil, false,
		},
	} {
		if broken := postedWithoutLookup(test.writes, test.asked); len(broken) > 0 != test.breaks {
			t.Errorf("%s: %v", what, broken)
		}
	}
}

// However often one invariant is broken, the other broken ones are reported too.
func TestEachBrokenInvariantIsReported(t *testing.T) {
	var r Report
	for range 9 {
		r.Broken = append(r.Broken, Finding{Violation: invariants.Violation{Invariant: "I-1"}})
	}
	r.Broken = append(r.Broken, Finding{Violation: invariants.Violation{Invariant: "I-8"}})
	if text := r.String(); !strings.Contains(text, " breaks I-8: ") || strings.Count(text, " breaks I-1: ") != 5 ||
		!strings.Contains(text, "and 4 more") {
		t.Error(text)
	}
}

// A rolling restart blocks other disturbances before it checks whether one is active. Otherwise
// one that starts in between would be blamed on the restart.
func TestRollBlocksDisturbancesFirst(t *testing.T) {
	s, held := &stage{tally: newTally(), processes: map[string]*installation.Process{}}, false
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		held = s.rolling.Load()
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer receiver.Close()
	for _, target := range []string{receiver0, receiver1} {
		s.processes[target] = &installation.Process{URL: receiver.URL}
	}
	s.roll(t.Context())
	if !held {
		t.Error("another disturbance may begin when it has looked")
	}
	if s.rolling.Load() {
		t.Error("others are held off when it has been given up")
	}
}

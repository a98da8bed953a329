// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/oracle/scenario"
)

const application = "CI"

func run(pipeline, event, ended, value string) Run {
	env := []any{map[string]any{"name": "A", "value": value}}
	return Run{Pipeline: pipeline, EventType: event, SHA: "abc", Ended: ended, Spec: map[string]any{"env": env}}
}

func TestDifferencesAreFound(t *testing.T) {
	a := run("build", "push", "succeeded", "1")
	for name, test := range map[string]struct {
		pac, ours Side
		want      string
	}{
		"nothing": {Side{Runs: []Run{a}}, Side{Runs: []Run{a}}, ""},
		"a run is missed": {Side{Runs: []Run{a}}, Side{},
			`after act 1: a run of Pipelines-as-Code only, build: Pipelines-as-Code "push", Plumbline ""`},
		"a run too many": {Side{Runs: []Run{a}}, Side{Runs: []Run{a, a}},
			`after act 1: a run of Plumbline only, build: Pipelines-as-Code "", Plumbline "push"`},
		"a value": {Side{Runs: []Run{a}}, Side{Runs: []Run{run("build", "push", "succeeded", "2")}},
			`after act 1: rendered, build, env[A].value: Pipelines-as-Code "1", Plumbline "2"`},
		"an event type": {Side{Runs: []Run{a}}, Side{Runs: []Run{run("build", "tag", "succeeded", "1")}},
			`after act 1: event type, build: Pipelines-as-Code "push", Plumbline "tag"`},
		"an end": {Side{Runs: []Run{a}}, Side{Runs: []Run{run("build", "push", "failed", "1")}},
			`after act 1: ended, build: Pipelines-as-Code "succeeded", Plumbline "failed"`},
		"a check": {
			Side{Checks: []Check{{Name: "CI", SHA: "abc", Status: "queued"}}}, Side{},
			`after act 1: check, CI: Pipelines-as-Code "queued", Plumbline ""`,
		},
		"a run that is left": {
			Side{Left: map[string][]int{"build": {0}}}, Side{Left: map[string][]int{"build": {1, 0}}},
			`after act 1: runs that are left, build: Pipelines-as-Code "[0]", Plumbline "[0 1]"`,
		},
		"how an earlier run ended": {
			Side{Earlier: map[string][]Earlier{"build": {{2, "runs"}, {1, "cancelled"}}}},
			Side{Earlier: map[string][]Earlier{"build": {{1, "runs"}, {2, "runs"}}}},
			`after act 1: an earlier run, build of act 1: Pipelines-as-Code "cancelled", Plumbline "runs"`,
		},
		"the newest check counts": {
			Side{Checks: []Check{
				{Name: "CI", SHA: "abc", Status: "queued"}, {Name: "CI", SHA: "abc", Status: "completed", Conclusion: "success"},
			}},
			Side{Checks: []Check{{Name: "CI", SHA: "abc", Status: "completed", Conclusion: "success"}}}, "",
		},
		"a check of a run that is missed follows from that": {
			Side{Runs: []Run{a}, Checks: []Check{{Name: "CI / build", SHA: "abc", Conclusion: "success"}}}, Side{},
			`after act 1: a run of Pipelines-as-Code only, build: Pipelines-as-Code "push", Plumbline ""`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, d := range Compare(application, []Side{test.pac}, []Side{test.ours}) {
				got = strings.TrimPrefix(got+"\n"+d.String(), "\n")
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A check that differs is listed after the act that caused it, and again when it differs in
// another way.
func TestCheckDifferenceIsListedOnce(t *testing.T) {
	side := func(state string) Side { return Side{Checks: []Check{{Name: "CI", SHA: "abc", Status: state}}} }
	got := ""
	for _, d := range Compare(application, []Side{side("queued"), side("queued"), side("queued")},
		[]Side{side("done"), side("done"), side("late")}) {
		got += fmt.Sprintf("%d %s ", d.Act, d.Ours)
	}
	if got != "0 done 2 late " {
		t.Errorf("got %q", got)
	}
}

// Each difference is described in docs/, in the words of the table.
func TestDifferencesAreDocumented(t *testing.T) {
	names := map[string]bool{}
	for _, m := range Differences() {
		page, err := os.ReadFile("../../../" + m.Page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), m.Says) {
			t.Errorf("%q: %s does not say %q", m.Name, m.Page, m.Says)
		}
		if m.Because == "" || names[m.Name] {
			t.Errorf("%q has no reason, or is there twice", m.Name)
		}
		names[m.Name] = true
	}
}

// Between users with write access, a push and its pull request, only the listed differences of
// commands are intended.
func TestUnintendedDifferencesAreReported(t *testing.T) {
	s := scenario.Scenario{Pipelines: []scenario.Pipeline{{Name: "p1", On: map[string]string{"on-event": "[push]"}}},
		Acts: []scenario.Act{{Kind: scenario.Push, By: scenario.Writer}}}
	for _, what := range []What{OnlyPaC, OnlyOurs, Rendered, Labelled, Commit, Ending, Reported, Left, Became} {
		for _, state := range []string{"", "queued", "success", "skipped", "cancelled", "main"} {
			d := Difference{What: what, Subject: "p1", Path: "env[WHERE].value", Of: 1, PaC: "head", Ours: state}
			if meant, others := Judge(s, []Difference{d}); len(others) != 1 {
				t.Errorf("%v is taken for %s", d, fmt.Sprint(meant))
			}
		}
	}
}

// Kept runs are compared only for pipelines whose runs do not differ.
func TestKeptRunsFollowFromRuns(t *testing.T) {
	a := run("build", "push", "succeeded", "1")
	pac := []Side{{Runs: []Run{a}, Left: map[string][]int{"build": {0}}}, {Left: map[string][]int{"build": {1}}}}
	ours := []Side{{}, {}}
	if found := Compare(application, pac, ours); len(found) != 1 || found[0].What != OnlyPaC {
		t.Errorf("found %v", found)
	}
}

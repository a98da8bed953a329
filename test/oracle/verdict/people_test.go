// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"

	"github.com/plumbline-ci/plumbline/test/oracle/scenario"
)

// by is what somebody does to a pull request.
func by(kind scenario.Kind, user, text string) scenario.Act {
	return scenario.Act{Kind: kind, By: user, Text: text}
}

// opens is a pull request from somebody's fork.
func opens(user string) scenario.Act {
	return scenario.Act{Kind: scenario.Open, By: user, Fork: true, Branch: scenario.Main}
}

// The intended differences after the last of some acts.
func TestIntendedDifferences(t *testing.T) {
	const (
		readers = "a member or reader starts or ends runs by a comment"
		remarks = "a writer's comment runs what waits for approval"
		labels  = "a label asks for approval of a commit that was approved"
		starts  = "/ok-to-test that starts nothing leaves a check"
		again   = "an untrusted user's command asks for approval of a commit that was approved"
	)
	check := func(pac, ours string) Difference {
		return Difference{What: Reported, Subject: "Pipelines as Code CI", PaC: pac, Ours: ours}
	}
	run := func(what What) Difference { return Difference{What: what, Subject: "p1"} }
	fork, fromReader := opens(scenario.Stranger), opens(scenario.Reader)
	own := scenario.Act{Kind: scenario.Open, By: scenario.Writer, Branch: scenario.Main}
	says := func(user, text string) scenario.Act { return by(scenario.Comment, user, text) }
	approved, deploy := says(scenario.Writer, "/ok-to-test"), says(scenario.Writer, "/deploy now")
	labelled, asked := by(scenario.Labeled, scenario.Triager, scenario.Label), says(scenario.Reader, "/ok-to-test")
	byWriter := by(scenario.Labeled, scenario.Writer, scenario.Label)
	moved := by(scenario.Sync, scenario.Stranger, "")
	for name, test := range map[string]struct {
		meant string
		acts  []scenario.Act
		found Difference
		want  int
	}{
		// A comment of somebody who may read takes a waiting check away at Pipelines-as-Code, which
		// runs for them.
		"a reader comments, and one waits here": {readers, []scenario.Act{fork, asked}, check("", "queued"), 1},
		"a reader comments, and one ended by an approval": {
			readers, []scenario.Act{fork, approved, labelled, asked}, check("", "skipped"), 1,
		},
		"a reader comments, and one ended without one": {
			readers, []scenario.Act{fork, labelled, asked}, check("", "skipped"), 0,
		},
		"a writer comments, and one ended here": {
			readers, []scenario.Act{fork, approved, labelled, says(scenario.Writer, "hello")}, check("", "skipped"), 0,
		},
		// A writer's comment that is no command runs what waits at Pipelines-as-Code only.
		"a remark, and a run there": {remarks, []scenario.Act{fork, deploy}, run(OnlyPaC), 1},
		"a remark, and a run here":  {remarks, []scenario.Act{fork, deploy}, run(OnlyOurs), 0},
		"an untrusted user's remark": {
			remarks, []scenario.Act{fork, says(scenario.Stranger, "/deploy now")}, run(OnlyPaC), 0,
		},
		"a remark about a commit that was approved": {remarks, []scenario.Act{fork, approved, deploy}, run(OnlyPaC), 0},
		"a remark after what contradicts itself": {
			remarks, []scenario.Act{fork, says(scenario.Owner, contradictory), deploy}, run(OnlyPaC), 1,
		},
		"a remark on a writer's pull request": {remarks, []scenario.Act{own, deploy}, run(OnlyPaC), 0},
		"a remark that matches no on-comment": {
			remarks, []scenario.Act{fork, says(scenario.Writer, "looks good")}, run(OnlyPaC), 0,
		},
		// A label runs a commit that was approved, at Plumbline only.
		"a writer's label": {
			labels, []scenario.Act{fork, approved, byWriter}, run(OnlyOurs), 1,
		},
		"a label of somebody who may only label": {
			labels, []scenario.Act{fork, approved, labelled}, run(OnlyOurs), 0,
		},
		"a label without an approval": {labels, []scenario.Act{fork, byWriter}, run(OnlyOurs), 0},
		"a label, and the approval was of another commit": {
			labels, []scenario.Act{fork, approved, moved, byWriter}, run(OnlyOurs), 0,
		},
		// An untrusted user's command does not affect an approved commit. For a commit without
		// approval this difference is not intended.
		"an untrusted user asks again after an approval": {
			again, []scenario.Act{fork, approved, says(scenario.Stranger, "/test")}, check("queued", "skipped"), 1,
		},
		"an untrusted user asks again after a remark": {again, []scenario.Act{
			fork, says(scenario.Writer, "looks good"), says(scenario.Stranger, "/test"),
		}, check("queued", "skipped"), 0},
		// An approval that starts nothing has no check of its own here.
		"an approval that starts nothing": {starts, []scenario.Act{fromReader, approved}, check("neutral", ""), 1},
		"another command that starts nothing": {
			starts, []scenario.Act{fromReader, says(scenario.Writer, "/test")}, check("neutral", ""), 0,
		},
		"a reader's approval":                 {starts, []scenario.Act{fromReader, asked}, check("neutral", ""), 0},
		"an approval, and a check that waits": {starts, []scenario.Act{fromReader, approved}, check("neutral", "queued"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			test.found.Act = len(test.acts) - 1
			if meant, _ := Judge(scenario.Scenario{Acts: test.acts}, []Difference{test.found}); meant[test.meant] != test.want {
				t.Errorf("meant are %v", meant)
			}
		})
	}
}

// A pending check becomes a run's check at Pipelines-as-Code only where it starts a run.
func TestPendingCheckDifference(t *testing.T) {
	const application, want = "Pipelines as Code CI", "a check that waits is not that of a run that somebody starts"
	fork := opens(scenario.Stranger)
	both := scenario.Act{Kind: scenario.Comment, By: scenario.Owner, Text: "/test\n/retest"}
	waits := Side{Checks: []Check{{Name: application, Status: "queued"}}}
	ran := Side{Runs: []Run{{Pipeline: "p1"}}}
	for name, test := range map[string]struct {
		pac, ours Side
		want      int
	}{
		"a run there":            {ran, waits, 1},
		"no run, and no check":   {Side{}, waits, 0},
		"a run there, none here": {ran, Side{}, 0},
		"a run of both":          {ran, Side{Checks: waits.Checks, Runs: ran.Runs}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found := Compare(application, []Side{waits, test.pac}, []Side{waits, test.ours})
			if meant, _ := Judge(scenario.Scenario{Acts: []scenario.Act{fork, both}}, found); meant[want] != test.want {
				t.Errorf("meant are %v of %v", meant, found)
			}
		})
	}
}

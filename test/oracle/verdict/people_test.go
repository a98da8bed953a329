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

// A comment of somebody who may read takes a waiting check away at Pipelines-as-Code, which runs for them.
func TestWhatAReadersCommentMakesOfACheckThatWaits(t *testing.T) {
	const application, want = "Pipelines as Code CI", "a member or reader starts or ends runs by a comment"
	fork := opens(scenario.Stranger)
	approved, labelled := by(scenario.Comment, scenario.Writer, "/ok-to-test"), by(scenario.Labeled, scenario.Triager, "other")
	byReader := by(scenario.Comment, scenario.Reader, "/ok-to-test")
	for name, test := range map[string]struct {
		acts []scenario.Act
		ours string
		want int
	}{
		"one that waits here":                        {[]scenario.Act{fork, byReader}, "queued", 1},
		"one that ended here, with an approval":      {[]scenario.Act{fork, approved, labelled, byReader}, "skipped", 1},
		"one that ended here, without an approval":   {[]scenario.Act{fork, labelled, byReader}, "skipped", 0},
		"one that ended here, and a writer comments": {[]scenario.Act{fork, approved, labelled, by(scenario.Comment, scenario.Writer, "hello")}, "skipped", 0},
	} {
		t.Run(name, func(t *testing.T) {
			found := Difference{Act: len(test.acts) - 1, What: Reported, Subject: application, Ours: test.ours}
			if meant, _ := Judge(scenario.Scenario{Acts: test.acts}, []Difference{found}); meant[want] != test.want {
				t.Errorf("meant are %v", meant)
			}
		})
	}
}

// A writer's comment that is no command runs what waits at Pipelines-as-Code only.
func TestARemarkOfAWriterApprovesNothing(t *testing.T) {
	const want = "a writer's comment runs what waits for approval"
	fork := opens(scenario.Stranger)
	own := scenario.Act{Kind: scenario.Open, By: scenario.Writer, Branch: scenario.Main}
	for name, test := range map[string]struct {
		acts []scenario.Act
		what What
		want int
	}{
		"a run there":                        {[]scenario.Act{fork, by(scenario.Comment, scenario.Writer, "/deploy now")}, OnlyPaC, 1},
		"a run here":                         {[]scenario.Act{fork, by(scenario.Comment, scenario.Writer, "/deploy now")}, OnlyOurs, 0},
		"a stranger's":                       {[]scenario.Act{fork, by(scenario.Comment, scenario.Stranger, "/deploy now")}, OnlyPaC, 0},
		"of a commit that was approved":      {[]scenario.Act{fork, by(scenario.Comment, scenario.Writer, "/ok-to-test"), by(scenario.Comment, scenario.Writer, "/deploy now")}, OnlyPaC, 0},
		"after what contradicts itself":      {[]scenario.Act{fork, by(scenario.Comment, scenario.Owner, "/test\n/retest"), by(scenario.Comment, scenario.Writer, "/deploy now")}, OnlyPaC, 1},
		"on a writer's pull request":         {[]scenario.Act{own, by(scenario.Comment, scenario.Writer, "/deploy now")}, OnlyPaC, 0},
		"what matches no on-comment is said": {[]scenario.Act{fork, by(scenario.Comment, scenario.Writer, "looks good")}, OnlyPaC, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found := Difference{Act: len(test.acts) - 1, What: test.what, Subject: "p1"}
			if meant, _ := Judge(scenario.Scenario{Acts: test.acts}, []Difference{found}); meant[want] != test.want {
				t.Errorf("meant are %v", meant)
			}
		})
	}
}

// A label runs a commit that was approved, at Plumbline only.
func TestALabelOnAnApprovedCommit(t *testing.T) {
	const want = "a label asks for approval of a commit that was approved"
	fork := opens(scenario.Stranger)
	approved, moved := by(scenario.Comment, scenario.Writer, "/ok-to-test"), by(scenario.Sync, scenario.Stranger, "")
	for name, test := range map[string]struct {
		acts []scenario.Act
		want int
	}{
		"a writer's":                     {[]scenario.Act{fork, approved, by(scenario.Labeled, scenario.Writer, scenario.Label)}, 1},
		"of somebody who may only label": {[]scenario.Act{fork, approved, by(scenario.Labeled, scenario.Triager, scenario.Label)}, 0},
		"without an approval":            {[]scenario.Act{fork, by(scenario.Labeled, scenario.Writer, scenario.Label)}, 0},
		"of another commit":              {[]scenario.Act{fork, approved, moved, by(scenario.Labeled, scenario.Writer, scenario.Label)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found := Difference{Act: len(test.acts) - 1, What: OnlyOurs, Subject: "p1"}
			if meant, _ := Judge(scenario.Scenario{Acts: test.acts}, []Difference{found}); meant[want] != test.want {
				t.Errorf("meant are %v", meant)
			}
		})
	}
}

// A check that waits is taken for a run's at Pipelines-as-Code only where it starts one.
func TestACheckThatStillWaits(t *testing.T) {
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

// An approval that starts nothing has no check of its own here.
func TestAnApprovalThatStartsNothing(t *testing.T) {
	const want = "/ok-to-test that starts nothing leaves a check"
	fork := opens(scenario.Reader)
	for name, test := range map[string]struct {
		by, text, ours string
		want           int
	}{
		"an approval":        {scenario.Writer, "/ok-to-test", "", 1},
		"another command":    {scenario.Writer, "/test", "", 0},
		"a reader's":         {scenario.Reader, "/ok-to-test", "", 0},
		"a check that waits": {scenario.Writer, "/ok-to-test", "queued", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario.Scenario{Acts: []scenario.Act{fork, {Kind: scenario.Comment, By: test.by, Text: test.text}}}
			found := Difference{Act: 1, What: Reported, Subject: "Pipelines as Code CI", PaC: "neutral", Ours: test.ours}
			if meant, _ := Judge(s, []Difference{found}); meant[want] != test.want {
				t.Errorf("meant are %v", meant)
			}
		})
	}
}

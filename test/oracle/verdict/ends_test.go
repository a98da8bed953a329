// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"

	"github.com/plumbline-ci/plumbline/test/oracle/scenario"
)

// A run that ends only at Plumbline is intended for the listed reason, and for no other.
func TestEndingOnlyHereIsIntended(t *testing.T) {
	const held, cancels = "p1", "p2"
	ours := func(pipeline string, of int) Difference {
		return Difference{What: Became, Subject: pipeline, Of: of, PaC: "runs", Ours: "cancelled"}
	}
	theirs := func(pipeline string) Difference {
		return Difference{What: Became, Subject: pipeline, Of: 1, PaC: "cancelled", Ours: "runs"}
	}
	fork := opens(scenario.Stranger)
	own := scenario.Act{Kind: scenario.Open, By: scenario.Writer, Branch: scenario.Main}
	for name, test := range map[string]struct {
		acts  []scenario.Act
		found Difference
		pulls bool // enable-cancel-in-progress-on-pull-requests
		want  string
	}{
		"the author's /cancel": {[]scenario.Act{fork, by(scenario.Comment, scenario.Stranger,
			"/cancel")}, ours(held, 1), false, "the author cancels the runs of its own pull request"},
		"another untrusted user's /cancel": {
			[]scenario.Act{fork, by(scenario.Comment, "eve", "/cancel")}, ours(held, 1), false, "",
		},
		"a writer's /cancel": {
			[]scenario.Act{own, by(scenario.Comment, scenario.Writer, "/cancel")}, ours(held, 1), false, "",
		},
		"a close": {
			[]scenario.Act{own, by(scenario.Closed, scenario.Writer, "")}, ours(held, 1), false, "a close ends every run",
		},
		"a close, of what asks for it": {
			[]scenario.Act{own, by(scenario.Closed, scenario.Writer, "")}, ours(cancels, 1), false, "",
		},
		"a close, by the default": {
			[]scenario.Act{own, by(scenario.Closed, scenario.Writer, "")}, ours(held, 1), true, "",
		},
		"a close of an untrusted user's": {[]scenario.Act{fork, by(scenario.Closed, scenario.Writer, "")},
			ours(cancels, 1), false, "the close of an untrusted user's pull request asks for approval"},
		"a push after a label": {[]scenario.Act{
			own, by(scenario.Labeled, scenario.Writer, scenario.Label), by(scenario.Sync, scenario.Writer, ""),
		}, ours(cancels, 2), false, "a newer run, or a close, ends what a label has started"},
		"a push after a label, of what asks not": {[]scenario.Act{
			own, by(scenario.Labeled, scenario.Writer, scenario.Label), by(scenario.Sync, scenario.Writer, ""),
		}, ours(held, 2), false, ""},
		"a push, of what no label has started": {[]scenario.Act{
			own, by(scenario.Labeled, scenario.Writer, scenario.Label), by(scenario.Sync, scenario.Writer, ""),
		}, ours(cancels, 1), false, ""},
		"a push": {
			[]scenario.Act{own, by(scenario.Sync, scenario.Writer, "")}, ours(cancels, 1), false, "",
		},
		"a push, there only": {
			[]scenario.Act{own, by(scenario.Sync, scenario.Writer, "")}, theirs(cancels), false, "",
		},
		"a push to a branch called the same, there only": {[]scenario.Act{
			fork, {Kind: scenario.Push, By: scenario.Writer, Branch: scenario.Feature},
		}, theirs(cancels), false, "a push ends runs of a pull request of a fork's branch that is called the same"},
		"a push to a branch called the same, here only": {[]scenario.Act{
			fork, {Kind: scenario.Push, By: scenario.Writer, Branch: scenario.Feature},
		}, ours(cancels, 1), false, ""},
		"a push to the branch it goes to, there only": {
			[]scenario.Act{fork, {Kind: scenario.Push, By: scenario.Writer, Branch: scenario.Main}}, theirs(cancels), false, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario.Scenario{
				Defaults: scenario.Defaults{Pulls: test.pulls}, Acts: test.acts,
				Pipelines: []scenario.Pipeline{{Name: held, Held: true}, {Name: cancels, Held: true, Cancels: "true"}},
			}
			test.found.Act = len(test.acts) - 1
			meant, others := Judge(s, []Difference{test.found})
			if test.want == "" && len(others) != 1 || test.want != "" && meant[test.want] != 1 {
				t.Errorf("meant are %v", meant)
			}
		})
	}
}

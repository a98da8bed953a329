// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"strings"

	"github.com/plumbline-ci/plumbline/test/oracle/scenario"
)

func twoCommands(s scenario.Scenario, d Difference) bool {
	return act(s, d).Text == "/test\n/retest" && d.What == OnlyPaC
}

func withoutAnnotations(s scenario.Scenario, d Difference) bool {
	p, _ := s.Pipeline(d.Subject)
	return asks(act(s, d), "/test", "/retest") && named(s, d) == d.Subject && len(p.On) == 0 && d.What == OnlyOurs
}

func withoutDash(s scenario.Scenario, d Difference) bool {
	p, _ := s.Pipeline(pipelineOf(d))
	cancels := asks(act(s, d), "/cancel") && d.What == Reported && d.Ours == "cancelled"
	return named(s, d) == p.Name && p.Generated && (cancels || asks(act(s, d), "/test", "/retest") && d.What == OnlyOurs)
}

func runsAlready(s scenario.Scenario, d Difference) bool {
	p, _ := s.Pipeline(d.Subject)
	return asks(act(s, d), "/retest", "/ok-to-test") && named(s, d) != p.Name && p.Held && d.What == OnlyPaC
}

func closeEnds(s scenario.Scenario, d Difference) bool {
	return act(s, d).Kind == scenario.Closed && d.What == Reported && d.Ours == "cancelled" && d.PaC == "in_progress"
}

func closeAsks(s scenario.Scenario, d Difference) bool {
	return act(s, d).Kind == scenario.Closed && outside(s, d) && isEvent(d) && d.PaC == "queued"
}

func linesOfAValue(_ scenario.Scenario, d Difference) bool {
	lines := strings.HasSuffix(d.Path, "[COMMENT].value") || strings.HasSuffix(d.Path, "[LABELS].value")
	return d.What == Rendered && lines && d.PaC == strings.ReplaceAll(d.Ours, `\\n`, `\n`)
}

// named is the pipeline that the comment names, "" if it names none.
func named(s scenario.Scenario, d Difference) string {
	words := strings.Fields(act(s, d).Text)
	if act(s, d).Kind != scenario.Comment || len(words) != 2 {
		return ""
	}
	return words[1]
}

// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/test/oracle/scenario"
)

// contradictory are two different commands in one comment.
const contradictory = "/test\n/retest"

func twoCommands(s scenario.Scenario, d Difference) bool {
	return act(s, d).Text == contradictory && d.What == OnlyPaC
}

func startsNothing(s scenario.Scenario, d Difference) bool {
	return approves(act(s, d)) && asks(act(s, d), "/ok-to-test") && isEvent(d) && d.PaC == "neutral" && d.Ours == ""
}

func withoutAnnotations(s scenario.Scenario, d Difference) bool {
	p, _ := s.Pipeline(d.Subject)
	return asks(act(s, d), "/test", "/retest") && named(s, d) == d.Subject && len(p.On) == 0 && d.What == OnlyOurs
}

func withoutDash(s scenario.Scenario, d Difference) bool {
	p, _ := s.Pipeline(pipelineOf(d))
	cancels := asks(act(s, d), "/cancel") && onlyOursEnded(d)
	return named(s, d) == p.Name && p.Generated && (cancels || asks(act(s, d), "/test", "/retest") && d.What == OnlyOurs)
}

func runsAlready(s scenario.Scenario, d Difference) bool {
	p, _ := s.Pipeline(d.Subject)
	return asks(act(s, d), "/retest", "/ok-to-test") && named(s, d) != p.Name && p.Held && d.What == OnlyPaC
}

func authorCancels(s scenario.Scenario, d Difference) bool {
	open, _ := s.Opened(d.Act)
	own := asks(act(s, d), "/cancel") && act(s, d).By == open.By && !scenario.MayWrite(open.By)
	return own && onlyOursEnded(d)
}

// closeEnds is about pipelines of which Pipelines-as-Code ends nothing at a close.
func closeEnds(s scenario.Scenario, d Difference) bool {
	p, _ := s.Pipeline(pipelineOf(d))
	endsThere := p.Cancels == "true" || s.Defaults.Pulls && p.Cancels != "false"
	return act(s, d).Kind == scenario.Closed && onlyOursEnded(d) && !endsThere
}

func closeAsks(s scenario.Scenario, d Difference) bool {
	asked := isEvent(d) && d.PaC == "queued"
	return act(s, d).Kind == scenario.Closed && outside(s, d) && (asked || onlyOursEnded(d))
}

// labelledEnds is about runs that a label has started, and at a check about a commit for which one
// may have.
func labelledEnds(s scenario.Scenario, d Difference) bool {
	before := s.Acts[:d.Act]
	if d.What == Became {
		before = s.Acts[d.Of-1 : d.Of]
	}
	isLabel := func(a scenario.Act) bool { return a.Kind == scenario.Labeled }
	return onlyOursEnded(d) && overtaken(s, d) && slices.ContainsFunc(before, isLabel)
}

// pushEndsPull is about a push to a branch that is called like that of a fork's pull request.
func pushEndsPull(s scenario.Scenario, d Difference) bool {
	p, _ := s.Pipeline(pipelineOf(d))
	open, is := s.Opened(d.Act)
	a := act(s, d)
	pushed := is && open.Fork && a.Kind == scenario.Push && a.Branch == scenario.Feature
	goesOn := d.What == Reported && d.Ours == "in_progress" || d.What == Became && d.Ours == "runs"
	return pushed && goesOn && d.PaC == "cancelled" && (p.Cancels == "true" || s.Defaults.Pushes && p.Cancels == "")
}

// overtaken reports whether newer runs of a pipeline end the older ones, of pull requests.
func overtaken(s scenario.Scenario, d Difference) bool {
	p, _ := s.Pipeline(pipelineOf(d))
	return p.Cancels == "true" || s.Defaults.Pulls && p.Cancels == ""
}

func linesOfAValue(_ scenario.Scenario, d Difference) bool {
	lines := strings.HasSuffix(d.Path, "[COMMENT].value") || strings.HasSuffix(d.Path, "[LABELS].value")
	return d.What == Rendered && lines && d.PaC == strings.ReplaceAll(d.Ours, `\\n`, `\n`)
}

// onlyOursEnded reports whether Plumbline has ended a run that goes on at Pipelines-as-Code, by the
// run or by its check.
func onlyOursEnded(d Difference) bool {
	goesOn := d.What == Reported && d.PaC == "in_progress" || d.What == Became && d.PaC == "runs"
	return goesOn && d.Ours == "cancelled"
}

// named is the pipeline that the comment names, "" if it names none.
func named(s scenario.Scenario, d Difference) string {
	words := strings.Fields(act(s, d).Text)
	if act(s, d).Kind != scenario.Comment || len(words) != 2 {
		return ""
	}
	return words[1]
}

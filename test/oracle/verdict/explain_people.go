// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/test/oracle/scenario"
)

func readersPull(s scenario.Scenario, d Difference) bool {
	a := act(s, d)
	moved := a.Kind == scenario.Open || a.Kind == scenario.Sync || a.Kind == scenario.Labeled
	waits := isEvent(d) && d.PaC == "" && d.Ours == "queued"
	return fromReader(s, d) && (moved && d.What == OnlyPaC || waits)
}

// readersApproved is about the first approval of a commit. Pipelines-as-Code does not repeat
// succeeded runs for /ok-to-test and /retest.
func readersApproved(s scenario.Scenario, d Difference) bool {
	p, _ := s.Pipeline(d.Subject)
	a := act(s, d)
	again := asks(a, "/ok-to-test") || a.Text == "/retest"
	return fromReader(s, d) && approves(a) && again && !p.Fails && d.What == OnlyOurs && !approvedBefore(s, d)
}

// approvedBefore reports whether the commit that is the head at an act was approved by an earlier
// one.
func approvedBefore(s scenario.Scenario, d Difference) bool {
	for _, a := range slices.Backward(s.Acts[:d.Act]) {
		if a.Kind == scenario.Sync || a.Kind == scenario.Open {
			return false
		}
		if approves(a) {
			return true
		}
	}
	return false
}

func readersComment(s scenario.Scenario, d Difference) bool {
	a := act(s, d)
	ends := asks(a, "/cancel") && (d.What == Reported || d.What == Became) && d.PaC == "cancelled"
	// Of a check that waits Pipelines-as-Code makes that of the first run. It may be one that a
	// label has made of a commit that was approved.
	waits := d.Ours == "queued" || d.Ours == "skipped" && approvedBefore(s, d)
	starts := d.What == OnlyPaC || isEvent(d) && outside(s, d) && d.PaC == "" && waits
	return reads(a.By) && (ends || starts && asks(a, "/test", "/retest", "/ok-to-test", "/deploy"))
}

// remarkRuns is about comments that are no command.
func remarkRuns(s scenario.Scenario, d Difference) bool {
	a := act(s, d)
	return outside(s, d) && scenario.MayWrite(a.By) && asks(a, "/deploy") && d.What == OnlyPaC && !approvedBefore(s, d)
}

func triagersLabel(s scenario.Scenario, d Difference) bool {
	a := act(s, d)
	return a.Kind == scenario.Labeled && !scenario.MayWrite(a.By) && d.What == OnlyPaC
}

func untrustedCommand(s scenario.Scenario, d Difference) bool {
	a := act(s, d)
	return asks(a, "/") && !scenario.MayWrite(a.By) && isEvent(d) && d.PaC == "queued" && d.Ours == ""
}

func untrustedAsksAgain(s scenario.Scenario, d Difference) bool {
	a := act(s, d)
	asked := asks(a, "/") && !scenario.MayWrite(a.By) && outside(s, d)
	return asked && approvedBefore(s, d) && isEvent(d) && d.PaC == "queued" && d.Ours == "skipped"
}

func pushedAgain(s scenario.Scenario, d Difference) bool {
	return outside(s, d) && act(s, d).Kind == scenario.Sync && isEvent(d) && d.PaC == "queued" && d.Ours == ""
}

func waitingCheckEnds(s scenario.Scenario, d Difference) bool {
	return outside(s, d) && approves(act(s, d)) && isEvent(d) && d.Ours == "skipped"
}

// stillWaits is about runs that Pipelines-as-Code starts for another listed reason.
func stillWaits(s scenario.Scenario, d Difference) bool {
	return outside(s, d) && d.Ran && isEvent(d) && d.PaC == "" && d.Ours == "queued"
}

func ownApproval(s scenario.Scenario, d Difference) bool {
	open, _ := s.Opened(d.Act)
	return asks(act(s, d), "/ok-to-test") && act(s, d).By == open.By && d.What == OnlyPaC
}

func labelAsks(s scenario.Scenario, d Difference) bool {
	runs := d.What == OnlyOurs && scenario.MayWrite(act(s, d).By) && approvedBefore(s, d)
	return outside(s, d) && act(s, d).Kind == scenario.Labeled &&
		(runs || isEvent(d) && d.PaC == "queued" && d.Ours == "skipped")
}

func approvedDefinitions(s scenario.Scenario, d Difference) bool {
	return outside(s, d) && s.Provenance == "" && d.What == Rendered && strings.Contains(d.Path, "[WHERE]") &&
		d.PaC == "head" && d.Ours == "main"
}

func untrustedSkips(s scenario.Scenario, d Difference) bool {
	waits := d.Ours == "queued" || d.Ours == "" && act(s, d).Kind == scenario.Sync // which may show it later
	return outside(s, d) && isEvent(d) && d.PaC == "skipped" && waits
}

// asks reports whether an act is a comment of which a line begins with one of some words.
func asks(a scenario.Act, words ...string) bool {
	return a.Kind == scenario.Comment &&
		slices.ContainsFunc(words, func(word string) bool { return strings.Contains("\n"+a.Text, "\n"+word) })
}

// approves reports whether an act lets the commit of a pull request run: a command to start runs
// by a user with write access.
func approves(a scenario.Act) bool {
	return scenario.MayWrite(a.By) && asks(a, "/test", "/retest", "/ok-to-test") && a.Text != contradictory
}

// pipelineOf is the name of the pipeline that a difference is about, or whose check it is about; ""
// at the check of an event.
func pipelineOf(d Difference) string {
	if d.What != Reported {
		return d.Subject
	}
	_, name, _ := strings.Cut(d.Subject, between)
	return name
}

// act is what the difference was found after.
func act(s scenario.Scenario, d Difference) scenario.Act { return s.Acts[d.Act] }

// reads reports whether a user may not start runs because of read-only access.
func reads(user string) bool { return user == scenario.Member || user == scenario.Reader }

// outside reports whether the pull request is from a fork of a user without write access.
func outside(s scenario.Scenario, d Difference) bool {
	open, is := s.Opened(d.Act)
	return is && open.Fork && !scenario.MayWrite(open.By)
}

// fromReader reports whether it is from a fork of a user with read access.
func fromReader(s scenario.Scenario, d Difference) bool {
	open, is := s.Opened(d.Act)
	return is && open.Fork && reads(open.By)
}

// isEvent reports whether a difference is about the check of an event as a whole.
func isEvent(d Difference) bool { return d.What == Reported && !strings.Contains(d.Subject, between) }

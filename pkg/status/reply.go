// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ReplyMark begins the comment that answers the commands of a pull request. By it Plumbline
// recognises the comment; a page does not show it.
const ReplyMark = "<!-- plumbline reply -->"

// The limits keep a reply readable; the status of the event has the rest. Together they stay below
// half of what GitHub allows in a comment, 65,536 characters.
const (
	maxBefore  = 4    // commands before the newest
	maxBecause = 20   // pipelines that are not started
	maxNames   = 50   // pipelines that are
	maxSays    = 1000 // bytes of what is said of the newest command,
	maxReason  = 200  // of a pipeline, and of a command before it
	maxWhy     = 400  // of a pipeline in the answer to /why
)

// answered is the part of a reply about one command. All of it is Markdown.
type answered struct {
	By, Command, Commit, Says string
	// Because are the pipelines that are not started; Explains is the answer to /why.
	Because, Explains []string
}

// Replies returns the comment that answers the commands of one pull request: the newest in full,
// and some earlier ones in one line each. Events without a Reply are left out.
func Replies(events []*v1alpha1.GitEvent) string {
	events = NewestCommands(events)
	var page struct {
		Mark   string
		Newest *answered
		Before []answered
	}
	page.Mark = ReplyMark
	for i, event := range events {
		if i == 0 {
			page.Newest = inFull(event)
			continue
		}
		page.Before = append(page.Before, inBrief(event))
	}
	return render("reply.md", page)
}

// NewestCommands returns the commands that the comment answers, the newest first. Of several /why
// it answers only the newest.
func NewestCommands(events []*v1alpha1.GitEvent) []*v1alpha1.GitEvent {
	events = slices.DeleteFunc(slices.Clone(events),
		func(e *v1alpha1.GitEvent) bool { return e.Status.Reply == nil || e.Status.Plan == nil })
	slices.SortFunc(events, func(a, b *v1alpha1.GitEvent) int { return CompareCommands(b, a) })
	explains := false
	events = slices.DeleteFunc(events, func(e *v1alpha1.GitEvent) bool {
		again := explains && Explains(e)
		explains = explains || Explains(e)
		return again
	})
	return events[:min(len(events), 1+maxBefore)]
}

// CompareCommands orders the events of two commands, or of two pushes, by when they happened, then
// by their names.
func CompareCommands(a, b *v1alpha1.GitEvent) int {
	return cmp.Or(a.Happened().Compare(b.Happened()), cmp.Compare(a.Name, b.Name))
}

func inFull(event *v1alpha1.GitEvent) *answered {
	a := &answered{
		By:      quoted(event.Spec.Sender),
		Command: span(event.Status.Reply.Command),
		Says:    capital(says(event, maxSays, maxNames)),
	}
	if plan := event.Status.Plan; plan.HeadSHA != "" {
		a.Commit = quoted(plan.HeadSHA)
	}
	if Explains(event) {
		a.Says, a.Explains = explains(event.Status.Plan), explained(event.Status.Plan)
		return a
	}
	a.Because = because(event)
	return a
}

func inBrief(event *v1alpha1.GitEvent) answered {
	return answered{
		By:      quoted(event.Spec.Sender),
		Command: span(event.Status.Reply.Command),
		Says:    says(event, maxReason, maxBefore),
	}
}

// says returns the result of a command in one line: which pipelines it starts, or why none.
func says(event *v1alpha1.GitEvent, limit, names int) string {
	if started := starts(event, names); started != "" {
		return started
	}
	plan := event.Status.Plan
	if Explains(event) {
		return replyExplained
	}
	message := shorten(cmp.Or(strings.TrimSpace(plan.Message), plan.Reason), "…", limit)
	switch {
	case event.Status.Disposition == v1alpha1.DispositionCancels:
		return cancels(plan, message)
	case slices.ContainsFunc(event.Status.Runs, func(run v1alpha1.Run) bool {
		return run.Unresolved && standsForPlan(&run)
	}):
		return quoted(message)
	case event.Status.Disposition == v1alpha1.DispositionRuns:
		return replyNothing + "."
	case !strings.Contains(message, "nothing was "):
		separator := ": "
		if message != "" && unicode.IsUpper([]rune(message)[0]) {
			separator = ". "
		}
		message = replyNothing + separator + message
	}
	return quoted(message)
}

// cancels returns what a command cancels, and which runs it does not cancel.
func cancels(plan *v1alpha1.Plan, message string) string {
	format, left := replyCancels, ""
	if plan.Reason == v1alpha1.NothingToCancel {
		format = replyNothingToCancel
	}
	if plan.Message != "" && plan.Message != plan.Cancels.Why {
		left = " " + quoted(message)
	}
	return fmt.Sprintf(format, of(plan.Cancels)) + left
}

// starts returns the sentence about the pipelines that an event has started, or "".
func starts(event *v1alpha1.GitEvent, names int) string {
	var started []string
	for i := range event.Status.Runs {
		if run := &event.Status.Runs[i]; declined(run) == "" && !standsForPlan(run) {
			started = append(started, span(shorten(run.Pipeline, "…", maxReason)))
		}
	}
	if len(started) == 0 {
		return ""
	}
	more := ""
	if len(started) > names {
		more = " and " + strconv.Itoa(len(started)-names) + " more"
		started = started[:names]
	}
	return "starts " + strings.Join(started, ", ") + more + "."
}

// of returns what a cancellation is about: pipelines, or the pull request.
func of(c *v1alpha1.Cancellation) string {
	if c == nil || len(c.Names) == 0 {
		return "this pull request"
	}
	var names []string
	for _, name := range c.Names {
		names = append(names, span(shorten(name, "…", maxReason)))
	}
	return strings.Join(names, ", ")
}

// declined returns why a planned run is not started, or "".
func declined(run *v1alpha1.Run) string {
	switch {
	case run.Started():
		return ""
	case run.Refused != nil:
		return run.Refused.Message
	case run.Result != nil:
		return cmp.Or(run.Result.Message, run.Result.Reason)
	}
	return ""
}

// standsForPlan reports whether a run is a placeholder: no pipeline's, but its check shows, or has
// shown, what planning waits for.
func standsForPlan(run *v1alpha1.Run) bool {
	return run.Pipeline == pipelinesascode.Definitions && (run.Unresolved || run.Skipped())
}

// because lists the pipelines that a command does not start, each with the reason.
func because(event *v1alpha1.GitEvent) (lines []string) {
	planned := map[string]bool{}
	add := func(pipeline, why string) {
		lines = append(lines, span(shorten(pipeline, "…", maxReason))+": "+quoted(shorten(why, "…", maxReason)))
	}
	for i := range event.Status.Runs {
		run := &event.Status.Runs[i]
		planned[run.Pipeline] = true
		if standsForPlan(run) {
			continue
		}
		if why := declined(run); why != "" {
			add(run.Pipeline, why)
		}
	}
	for _, d := range event.Status.Plan.Decisions {
		if planned[cmp.Or(d.Pipeline, d.File)] || !tells(event.Status.Plan, &d) {
			continue
		}
		add(cmp.Or(d.Pipeline, d.File), d.Reason)
	}
	if len(lines) > maxBecause {
		lines = append(lines[:maxBecause:maxBecause], "and "+strconv.Itoa(len(lines)-maxBecause)+" more")
	}
	return lines
}

// tells reports whether the reason of a decision adds to what the reply says.
func tells(plan *v1alpha1.Plan, d *v1alpha1.Decision) bool {
	return d.Reason != v1alpha1.NotNamed && !strings.HasPrefix(d.Reason, "selected") &&
		!strings.HasPrefix(plan.Message, replyNothing)
}

// reference finds what GitHub and GitLab turn into a link: the number of an issue or merge request,
// or a URL. A link would notify the people who are involved there.
var reference = regexp.MustCompile(`(?i)((?:#|!|\$|%|&amp;|g[hl]-)[0-9]|://|www\.)`)

// quoted is plain for the words of untrusted users: in a comment, they can mention and notify no
// one.
func quoted(words string) string {
	return reference.ReplaceAllStringFunc(plain(visible(words)), func(found string) string {
		return found[:len(found)-1] + "\u200b" + found[len(found)-1:]
	})
}

// span is code for the words of untrusted users.
func span(words string) string { return code(visible(words)) }

// visible replaces characters that a page does not show, and those that change the order of other
// characters.
func visible(words string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, words)
}

// capital returns words with a capital first letter.
func capital(words string) string {
	first, size := utf8.DecodeRuneInString(words)
	return string(unicode.ToUpper(first)) + words[size:]
}

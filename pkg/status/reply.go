// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ReplyMark begins the comment that answers the commands of a pull request. It tells us and nobody
// else whose the comment is.
const ReplyMark = "<!-- plumbline reply -->"

// What a comment tells at most: it is for reading, and the status of the event has the rest. All of
// it is less than half of what a comment may have at GitHub, 65,536 characters.
const (
	maxBefore  = 4    // commands before the newest
	maxBecause = 20   // pipelines that are not started
	maxNames   = 50   // pipelines that are
	maxSays    = 1000 // bytes of what is said of the newest command,
	maxReason  = 200  // of a pipeline, and of a command before it
)

// answered is what a comment says of one command. All of it is Markdown.
type answered struct {
	By, Command, Commit, Says string
	Because                   []string
}

// Replies is the comment that answers the commands of one pull request: the newest of them in full,
// and some that were given before it in one line each. What has no Reply is left out.
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

// Newest returns the commands that the comment is about, the newest first.
func NewestCommands(events []*v1alpha1.GitEvent) []*v1alpha1.GitEvent {
	events = slices.DeleteFunc(
		slices.Clone(events),
		func(e *v1alpha1.GitEvent) bool { return e.Status.Reply == nil || e.Status.Plan == nil },
	)
	slices.SortFunc(events, func(a, b *v1alpha1.GitEvent) int { return CompareCommands(b, a) })
	return events[:min(len(events), 1+maxBefore)]
}

// Tells reports whether the comment that answers commands is about one of them: of many only the
// newest are in it.
func InReply(events []*v1alpha1.GitEvent, event *v1alpha1.GitEvent) bool {
	return slices.ContainsFunc(NewestCommands(events), func(e *v1alpha1.GitEvent) bool { return e.Name == event.Name })
}

// After compares two commands by when they were given, and then by the names of their events.
func CompareCommands(a, b *v1alpha1.GitEvent) int {
	return cmp.Or(a.Happened().Compare(b.Happened()), cmp.Compare(a.Name, b.Name))
}

// ReplyDigest identifies what is said of one command. It is the same in every process.
func ReplyDigest(event *v1alpha1.GitEvent) string {
	sum := sha256.Sum256([]byte(Replies([]*v1alpha1.GitEvent{event})))
	return hex.EncodeToString(sum[:])
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

// says is what became of a command, in one line: which pipelines it starts, or why none.
func says(event *v1alpha1.GitEvent, limit, names int) string {
	if started := starts(event, names); started != "" {
		return started
	}
	plan := event.Status.Plan
	message := shorten(cmp.Or(strings.TrimSpace(plan.Message), plan.Reason), "…", limit)
	switch {
	case event.Status.Disposition == v1alpha1.DispositionCancels:
		none := ""
		if plan.Reason == v1alpha1.NothingToCancel {
			none = ": there were none"
		}
		return "the runs" + of(plan.Cancels) + " that were there when this was written are ended" + none + "."
	case slices.ContainsFunc(event.Status.Runs, func(run v1alpha1.Run) bool { return run.Unresolved && standsForPlan(&run) }):
		return quoted(message)
	case event.Status.Disposition == v1alpha1.DispositionRuns:
		return "nothing was started."
	case !strings.Contains(message, "nothing was "):
		separator := ": "
		if message != "" && unicode.IsUpper([]rune(message)[0]) {
			separator = ". "
		}
		message = "nothing was started" + separator + message
	}
	return quoted(message)
}

// starts says which pipelines an event has started, "" if none.
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

// of names the pipelines that a cancellation is of.
func of(c *v1alpha1.Cancellation) string {
	if c == nil || len(c.Names) == 0 {
		return " of this pull request"
	}
	var names []string
	for _, name := range c.Names {
		names = append(names, span(shorten(name, "…", maxReason)))
	}
	return " of " + strings.Join(names, ", ")
}

// declined is why a planned run is not started, "" if it is or will be.
func declined(run *v1alpha1.Run) string {
	switch {
	case run.UID != "":
		return ""
	case run.Refused != nil:
		return run.Refused.Message
	case run.Result != nil:
		return cmp.Or(run.Result.Message, run.Result.Reason)
	}
	return ""
}

// standsForPlan reports whether a run is none of a pipeline: its check shows, or has shown, what
// the plan waits for.
func standsForPlan(run *v1alpha1.Run) bool {
	over := run.Result != nil && run.Result.Outcome == v1alpha1.OutcomeSkipped
	return run.Pipeline == pipelinesascode.Definitions && (run.Unresolved || over)
}

// because are the pipelines that a command does not start, each with the reason.
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

// tells reports whether the reason of a decision says something that the reply does not say yet.
func tells(plan *v1alpha1.Plan, d *v1alpha1.Decision) bool {
	return d.Reason != v1alpha1.NotNamed && !strings.HasPrefix(d.Reason, "selected") &&
		!strings.HasPrefix(plan.Message, "nothing was started")
}

// reference finds what GitHub and GitLab take for the number of an issue, a merge request or the
// like, or for the address of one, which they make a link of. Whoever is named there would hear of
// it.
var reference = regexp.MustCompile(`(?i)((?:#|!|\$|%|&amp;|g[hl]-)[0-9]|://|www\.)`)

// quoted is plain for the words of people whom nobody knows, on a page where others are notified of
// what is mentioned.
func quoted(words string) string {
	return reference.ReplaceAllStringFunc(plain(visible(words)), func(found string) string {
		return found[:len(found)-1] + "\u200b" + found[len(found)-1:]
	})
}

// span is code for such words.
func span(words string) string { return code(visible(words)) }

// visible is what is left of words without what nobody sees and what changes the order of other
// words.
func visible(words string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, words)
}

// capital begins words with a capital letter.
func capital(words string) string {
	first, size := utf8.DecodeRuneInString(words)
	return string(unicode.ToUpper(first)) + words[size:]
}

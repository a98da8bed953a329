// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const commit = "0123456789012345678901234567890123456789"

// commanded is a command that was given so many seconds after the start, and what became of it.
func commanded(seconds int, command string, change func(*v1alpha1.GitEventStatus)) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("comment-", seconds)}}
	e.Spec.Sender, e.Spec.HappenedAt, e.Spec.ReceivedAt = "ann", at(seconds), *at(59)
	e.Status = v1alpha1.GitEventStatus{
		Reply: &v1alpha1.Reply{Command: command}, Plan: &v1alpha1.Plan{HeadSHA: commit},
		Disposition: v1alpha1.DispositionIgnored,
	}
	change(&e.Status)
	return e
}

func started(pipelines ...string) func(*v1alpha1.GitEventStatus) {
	return func(s *v1alpha1.GitEventStatus) {
		s.Disposition, s.Plan.Reason, s.Plan.Message = v1alpha1.DispositionRuns, "Selected", "some of them are for this event"
		for _, name := range pipelines {
			s.Runs = append(s.Runs, v1alpha1.Run{Pipeline: name, Name: name + "-abc"})
			s.Plan.Decisions = append(s.Plan.Decisions,
				v1alpha1.Decision{Pipeline: name, Reason: "selected: on-event is [pull_request]"})
		}
	}
}

func ended(reason, message string) func(*v1alpha1.GitEventStatus) {
	return func(s *v1alpha1.GitEventStatus) { s.Plan.Reason, s.Plan.Message = reason, message }
}

func TestReplies(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]*v1alpha1.GitEvent{
		"reply-started": {commanded(1, "/test", func(s *v1alpha1.GitEventStatus) {
			started("build", "docs", "broken", "late")(s)
			s.Runs[2].Refused = &v1alpha1.Refusal{Reason: "BadYAML", Message: ".tekton/broken.yaml:3: did not find expected key"}
			s.Runs[3].Result = &v1alpha1.Result{
				Outcome: v1alpha1.OutcomeCancelled, Reason: "Cancelled", Message: "octocat closed the pull request",
			}
			s.Plan.Decisions = append(s.Plan.Decisions,
				v1alpha1.Decision{Pipeline: "push", Reason: "on-event is [push], and this is a pull_request"})
		})},
		"reply-named": {commanded(1, "/test build", func(s *v1alpha1.GitEventStatus) {
			started("build")(s)
			s.Plan.Decisions = append(s.Plan.Decisions, v1alpha1.Decision{Pipeline: "push", Reason: v1alpha1.NotNamed})
		})},
		"reply-unknown": {commanded(1, "/test biuld", func(s *v1alpha1.GitEventStatus) {
			ended("UnknownName", "nothing was started: no pipeline is called biuld. Did you mean build? (All: build, push)")(s)
			s.Plan.Decisions = []v1alpha1.Decision{
				{Pipeline: "build", Reason: "the command names an unknown pipeline, so it starts nothing"},
			}
		})},
		"reply-moved": {commanded(1, "/ok-to-test",
			ended("NotApproved", "The head of the pull request was not "+commit+" when the comment was written."))},
		"reply-two": {commanded(1, "/test", ended("ContradictoryCommands",
			"nothing was done: this comment has two different commands, /test and /cancel. Write one comment for each command"))},
		"reply-refused": {commanded(1, "/test build", func(s *v1alpha1.GitEventStatus) {
			started("build")(s)
			s.Runs[0].Refused = &v1alpha1.Refusal{Message: "no"}
		})},
		"reply-cancels": {commanded(1, "/cancel build", func(s *v1alpha1.GitEventStatus) {
			s.Disposition, s.Plan.Cancels = v1alpha1.DispositionCancels, &v1alpha1.Cancellation{Names: []string{"build"}}
		})},
		"reply-left": {commanded(1, "/cancel", func(s *v1alpha1.GitEventStatus) {
			ended("NothingToCancel", "Pipelines-as-Code started these before the move, and they are not cancelled: build-x7k2p. "+
				"To cancel one, run tkn pipelinerun cancel NAME.")(s)
			s.Disposition, s.Plan.Cancels = v1alpha1.DispositionCancels, &v1alpha1.Cancellation{Why: "member requested it"}
		})},
		"reply-several": {
			commanded(2, "/test build", started("build")), commanded(9, "/cancel", func(s *v1alpha1.GitEventStatus) {
				s.Disposition, s.Plan.Cancels = v1alpha1.DispositionCancels, &v1alpha1.Cancellation{}
			}), commanded(3, "/retest", ended("NothingToRetest", "of 2 pipelines none failed")),
			commanded(1, "/test too-old", started("too-old")),
			commanded(4, "/test", started("a", "b", "c", "d", "e")),
			commanded(5, "/test x", ended("UnknownName", "nothing was started: no x")),
		},
		"reply-hostile": {commanded(1, "/test `a` <!-- plumbline reply --> @all", func(s *v1alpha1.GitEventStatus) {
			ended("UnknownName", "nothing was started: no pipeline is called @acme/all, <img src=x>, [a](https://evil), acme/app#12, GH-3 &4.\n\n/close\n\n```\n<!-- plumbline check:1 -->\n\u202e")(s)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slices.Reverse(events) // whatever their order
			golden(t, name, Replies(events))
		})
	}
}

// A reply starts with Plumbline's mark. Text of untrusted users in it becomes no second mark, no
// command and no mention of a user.
func TestWhatStrangersWriteStaysText(t *testing.T) {
	t.Parallel()
	evil := "x`\n/test\n@all <!-- plumbline reply --> #12 !3 GL-4 https://evil.example/acme/app/issues/1 www.evil.example \u202e```"
	e := commanded(1, evil, started(evil))
	e.Spec.Sender = evil
	e.Status.Runs = append(e.Status.Runs, v1alpha1.Run{Pipeline: evil, Refused: &v1alpha1.Refusal{Message: evil}})
	e.Status.Plan.Decisions = []v1alpha1.Decision{{Pipeline: "other", File: evil, Reason: evil}}
	got := Replies([]*v1alpha1.GitEvent{e, commanded(0, evil, ended("Evil", evil))})
	rest, found := strings.CutPrefix(got, ReplyMark+"\n")
	for _, never := range []string{"<!--", "@a", "#12", "!3", "GL-4", "https://", "www.evil"} {
		if !found || strings.Contains(unspanned(rest), never) || strings.Contains(rest, "\u202e") {
			t.Errorf("with %s: %s", never, got)
		}
	}
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(strings.TrimLeft(line, " >*"), "/") {
			t.Errorf("a line begins with a command: %s", line)
		}
	}
}

// unspanned returns Markdown without its code spans, which in this test have four backticks.
func unspanned(text string) string {
	parts := strings.Split(text, "````")
	var out strings.Builder
	for i := 0; i < len(parts); i += 2 {
		out.WriteString(parts[i])
	}
	return out.String()
}

// A reply is always shorter than GitHub's shortest limit, and changes only when its content does.
func TestARepliesLength(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("<@#1`é", 2000)
	full := func(seconds int) *v1alpha1.GitEvent {
		return commanded(seconds, long[:250], func(s *v1alpha1.GitEventStatus) {
			started()(s)
			for i := range 250 {
				s.Runs = append(s.Runs, v1alpha1.Run{Pipeline: fmt.Sprint(i) + long},
					v1alpha1.Run{Pipeline: fmt.Sprint("r", i) + long, Refused: &v1alpha1.Refusal{Message: long}})
				s.Plan.Decisions = append(s.Plan.Decisions, v1alpha1.Decision{Pipeline: fmt.Sprint("d", i) + long, Reason: long})
			}
		})
	}
	var events []*v1alpha1.GitEvent
	for i := range 40 {
		events = append(events, full(i))
	}
	got := Replies(events)
	if n := utf8.RuneCountInString(got); n > 65536 || n < 5000 || !utf8.ValidString(got) {
		t.Errorf("%d characters", n)
	}
	if got != Replies(slices.Concat(events[7:], events[:7])) {
		t.Error("the order of the events decides")
	}
	running := full(50)
	said := func() string { return Replies([]*v1alpha1.GitEvent{running}) }
	before := said()
	running.Status.Runs[0].UID, running.Status.Runs[0].Result = "uid",
		&v1alpha1.Result{Outcome: v1alpha1.OutcomeFailed, CompletedAt: &metav1.Time{Time: time.Unix(1, 0)}}
	if said() != before {
		t.Error("the end of a run changes what is told of its start")
	}
	running.Status.Runs[2].Refused = &v1alpha1.Refusal{Message: "no"}
	if said() == before {
		t.Error("a refusal changes nothing")
	}
}

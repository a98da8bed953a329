// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// deletes is the delivery of a comment that its author has deleted. GitLab tells of none; an event
// of that name must do nothing there either.
func (w *world) deletes(number int, user, body string) delivery {
	w.t.Helper()
	if g, isGitLab := w.git.(*onGitLab); isGitLab {
		d := g.NoteDelivery(g.AddNote(projectName, int64(number), user, body))
		d.Body = []byte(strings.Replace(string(d.Body), `"action":"create"`, `"action":"delete"`, 1))
		return d
	}
	return w.forge.CommentDelivery(forge.CommentEvent{Repo: repoName, ID: w.forge.Comment(repoName, number, user, body), Action: "deleted"})
}

// ourselves is the account that Plumbline writes with, and a bot of somebody else's.
func (w *world) ourselves() (own, bot string) {
	if g, isGitLab := w.git.(*onGitLab); isGitLab {
		return g.token.User.Username, "group_7_bot_1"
	}
	return "plumbline[bot]", "renovate[bot]"
}

// S16: comments that are edited or deleted, of bots, of our own account or that begin as ours do,
// and those on what is closed, start nothing, are told nowhere and cost no call; those on what has
// been closed since only a few.
func TestS16WhatIsNoCommandStartsNothing(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.git.grant("member", "write")
		own, bot := w.ourselves()
		w.git.grant(bot, "write")
		w.git.commit("main", forge.Change{Files: map[string]string{".tekton/build.yaml": pipeline("build", "pull_request")}})
		w.git.commit("topic", forge.Change{Author: "member", Message: "a change [skip ci]", Files: map[string]string{"a": "b"}})
		number := w.git.open("", "topic", "member")
		w.deliver(w.opened(number), http.StatusAccepted)
		w.settled(soon)
		events := len(w.events())
		for name, d := range map[string]delivery{
			"edited": w.changed(number, "member", "/test"), "deleted": w.deletes(number, "member", "/test"), "of a bot": w.commands(number, bot, "/test"),
			"of our own": w.commands(number, own, "/test"), "with our mark": w.commands(number, "member", status.ReplyMark+"\n/test"),
		} {
			before := w.git.log()
			w.deliver(d, http.StatusOK)
			if after := w.git.log(); len(after.requests) != len(before.requests) || len(after.writes) != len(before.writes) || len(w.events()) != events {
				t.Errorf("a comment that is %s: %d records, %+v", name, len(w.events())-events, after.requests[len(before.requests):])
			}
		}
		late := map[string]delivery{"member": w.commands(number, "member", "/test"), "eve": w.commands(number, "eve", "/test")}
		w.closes(number, false)
		for user, most := range map[string]int{"member": 3, "eve": 2} { // the right to write, and what the pull request is now
			before := w.git.log()
			w.deliver(late[user], http.StatusAccepted)
			w.settled(soon)
			after := w.git.log()
			if calls := after.requests[len(before.requests):]; len(calls) > most || len(after.writes) != len(before.writes) {
				t.Errorf("the comment of %s on what has been closed since costs %+v", user, calls)
			}
			if event := w.recordOf(late[user]); len(event.Status.Runs) != 0 || event.Status.Plan.Approval != nil {
				t.Errorf("the comment of %s on what has been closed since: %+v", user, event.Status)
			}
		}
		before := w.git.log()
		w.deliver(w.commands(number, "member", "/test"), http.StatusOK)
		if after := w.git.log(); len(after.requests) != len(before.requests) {
			t.Errorf("a comment on what is closed costs %+v", after.requests[len(before.requests):])
		}
		if runs := w.runs(); len(runs) != 0 {
			t.Errorf("%d PipelineRuns, want none", len(runs))
		}
	})
}

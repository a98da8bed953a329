// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// answers are our comments on a pull request, each with how often it was edited, oldest first.
func (w *world) answers(number int) (all []string) {
	if g, isGitLab := w.git.(*onGitLab); isGitLab {
		for _, n := range g.Notes(projectName, int64(number)) {
			if strings.HasPrefix(n.Body, status.ReplyMark) {
				all = append(all, fmt.Sprint(n.Edits, " ", n.Body))
			}
		}
		return all
	}
	for _, c := range w.forge.Comments(repoName, number) {
		if strings.HasPrefix(c.Body, status.ReplyMark) {
			all = append(all, fmt.Sprint(c.Edits, " ", c.Body))
		}
	}
	return all
}

// answered requires one comment of ours, edited so often, that says the words.
func (w *world) answered(number, edits int, words ...string) {
	w.t.Helper()
	all := w.answers(number)
	if len(all) != 1 || !strings.HasPrefix(all[0], fmt.Sprint(edits, " ")) || slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(all[0], word) }) {
		w.t.Errorf("our comments are %q, want one with %d edits and %q", all, edits, words)
	}
}

// own is the delivery of our own comment.
func (w *world) own(number int) delivery {
	if g, isGitLab := w.git.(*onGitLab); isGitLab {
		return g.NoteDelivery(g.Notes(projectName, int64(number))[len(g.Notes(projectName, int64(number)))-1].ID)
	}
	all := w.forge.Comments(repoName, number)
	return w.forge.CommentDelivery(forge.CommentEvent{Repo: repoName, ID: all[len(all)-1].ID})
}

// The rows of the answers, in one world for each service: one comment, edited in place, and none
// for whoever may not ask.
func TestCommandsAreAnswered(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.git.grant("member", "write")
		w.git.commit("main", forge.Change{Files: map[string]string{"README": "1"}})
		w.git.commit("topic", forge.Change{Author: "member", Message: "a change [skip ci]", Files: map[string]string{".tekton/build.yaml": pipeline("build", "pull_request")}})
		number := w.git.open("", "topic", "member")
		w.deliver(w.opened(number), http.StatusAccepted)
		w.commanded(number, "eve", "/test")
		if all := w.answers(number); len(all) != 0 {
			t.Errorf("a stranger is answered: %q", all)
		}
		w.commanded(number, "member", "/test biuld")
		w.answered(number, 0, "no pipeline is called biuld. Did you mean build? (All: build")
		w.deliver(w.own(number), http.StatusOK) // our own comment is none of a person's
		w.commanded(number, "member", "/test\n/cancel")
		w.answered(number, 1, "two different commands", "`/test biuld`: nothing was started")
		w.commanded(number, "member", "/test")
		w.answered(number, 2, "`/test` at", "Starts `build`.")
		w.commanded(number, "member", "/test")
		w.answered(number, 3, "Starts `build`.", "`/test`: starts `build`.")
		w.commanded(number, "member", "/retest")
		w.answered(number, 4, "Nothing was started: of 1 pipelines")
	})
}

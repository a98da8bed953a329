// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// ownComments returns our comments with a mark on a pull request, each with how often it was
// edited, oldest first.
func (env *environment) ownComments(number int, mark string) (all []string) {
	if g, isGitLab := env.git.(*onGitLab); isGitLab {
		for _, n := range g.Notes(projectName, int64(number)) {
			if strings.HasPrefix(n.Body, mark) {
				all = append(all, fmt.Sprint(n.Edits, " ", n.Body))
			}
		}
		return all
	}
	for _, c := range env.forge.Comments(repoName, number) {
		if strings.HasPrefix(c.Body, mark) {
			all = append(all, fmt.Sprint(c.Edits, " ", c.Body))
		}
	}
	return all
}

// requireReply requires one answer of ours that was edited so often and contains the words.
func (env *environment) requireReply(number, edits int, words ...string) {
	env.t.Helper()
	env.requireComment(number, status.ReplyMark, edits, words...)
}

// requireComment requires one comment of ours with a mark, that was edited so often and contains
// the words.
func (env *environment) requireComment(number int, mark string, edits int, words ...string) {
	env.t.Helper()
	all := env.ownComments(number, mark)
	if len(all) != 1 {
		env.t.Errorf("our comments are %q, want one", all)
		return
	}
	if !strings.HasPrefix(all[0], fmt.Sprint(edits, " ")) {
		env.t.Errorf("our comment is %q, want %d edits", all[0], edits)
	}
	if !containsAll(all[0], words...) {
		env.t.Errorf("our comment is %q, want %q in it", all[0], words)
	}
}

// ownComment returns the delivery of our own comment.
func (env *environment) ownComment(number int) delivery {
	if g, isGitLab := env.git.(*onGitLab); isGitLab {
		return g.NoteDelivery(g.Notes(projectName, int64(number))[len(g.Notes(projectName, int64(number)))-1].ID)
	}
	all := env.forge.Comments(repoName, number)
	return env.forge.CommentDelivery(forge.CommentEvent{Repo: repoName, ID: all[len(all)-1].ID})
}

// Commands are answered in one comment that is edited in place. A user without the right to give
// commands gets no answer. All rows run in one environment for each service. With on_failure, there
// is another comment of that kind, about failed pipelines.
func TestCommandsAreAnswered(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.git.grant("member", "write")
		env.git.commit("main", forge.Change{Files: map[string]string{"README": "1"}})
		env.git.commit("topic", forge.Change{Author: "member", Message: "a change [skip ci]",
			Files: map[string]string{".tekton/build.yaml": pipeline("build", "pull_request")}})
		number := env.git.open("", "topic", "member")
		env.deliver(env.opened(number), http.StatusAccepted)
		env.runCommand(number, "eve", "/test")
		if all := env.ownComments(number, status.ReplyMark); len(all) != 0 {
			t.Errorf("an untrusted user is answered: %q", all)
		}
		env.runCommand(number, "member", "/test biuld")
		env.requireReply(number, 0, "no pipeline is called biuld. Did you mean build? (All: build")
		env.deliver(env.ownComment(number), http.StatusOK) // our own comment is not a user's
		env.runCommand(number, "member", "/test\n/cancel")
		env.requireReply(number, 1, "two different commands", "`/test biuld`: nothing was started")
		env.runCommand(number, "member", "/test")
		env.requireReply(number, 2, "`/test` at", "Starts `build`.")
		env.runCommand(number, "member", "/test")
		env.requireReply(number, 3, "Starts `build`.", "`/test`: starts `build`.")
		env.runCommand(number, "member", "/retest")
		env.requireReply(number, 4, "Nothing was started: none of the 1 pipelines")
		env.listsFailures(number)
	})
}

// listsFailures: a failed pipeline of a pull request is listed, and then fixed.
func (env *environment) listsFailures(number int) {
	env.t.Helper()
	if all := env.ownComments(number, status.FailuresMark); len(all) != 0 {
		env.t.Errorf("there is a comment about failures: %q", all)
	}
	env.changeSettings(fmt.Sprintf(`{%q:{"comment_strategy":"on_failure"}}`, env.git.kind()))
	for i, step := range []struct{ how, says string }{
		{fails, "| build | Failed"}, {"", "Fixed: no pipeline is failed any more at "},
	} {
		sha := env.git.commit("topic", forge.Change{Author: "member", Files: map[string]string{
			".tekton/build.yaml": pipeline("build", "pull_request", step.how),
		}})
		env.deliverAndSettle(env.git.pulled(number, "synchronize"))
		env.requireComment(number, status.FailuresMark, i, step.says, sha)
	}
}

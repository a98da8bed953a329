// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// deleteComment returns the delivery of a comment that its author has deleted. GitLab sends none;
// an event of that name must have no effect there either.
func (env *environment) deleteComment(number int, user, body string) delivery {
	return env.changeComment(number, user, body, "deleted", "delete")
}

// botAccounts returns the account that Plumbline writes with, and the bot of another user.
func (env *environment) botAccounts() (own, bot string) {
	if g, isGitLab := env.git.(*onGitLab); isGitLab {
		return g.token.User.Username, "group_7_bot_1"
	}
	return "plumbline[bot]", "renovate[bot]"
}

// S16: these comments start nothing, are not answered and cost no call: edited and deleted ones,
// those of bots and of our own account, those that begin like ours, and those on closed pull
// requests. Comments on a pull request that was closed since cost only a few calls.
func TestNonCommandsStartNothing(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.git.grant("member", "write")
		own, bot := env.botAccounts()
		env.git.grant(bot, "write")
		env.git.commit("main", forge.Change{
			Files: map[string]string{".tekton/build.yaml": pipeline("build", "pull_request")},
		})
		env.git.commit("topic", forge.Change{
			Author: "member", Message: "a change [skip ci]", Files: map[string]string{"a": "b"},
		})
		number := env.git.open("", "topic", "member")
		env.deliver(env.opened(number), http.StatusAccepted)
		env.awaitAllSettled(soon)
		events := len(env.events())
		for name, d := range map[string]delivery{
			"edited": env.editComment(number, "member", "/test"), "deleted": env.deleteComment(number, "member", "/test"),
			"of a bot":      env.comment(number, bot, "/test"),
			"of our own":    env.comment(number, own, "/test"),
			"with our mark": env.comment(number, "member", status.ReplyMark+"\n/test"),
		} {
			before := env.git.log()
			env.deliver(d, http.StatusOK)
			if after := env.git.log(); len(after.requests) != len(before.requests) || len(after.writes) != len(before.writes) ||
				len(env.events()) != events {
				t.Errorf("a comment that is %s: %d records, %+v", name, len(env.events())-events,
					after.requests[len(before.requests):])
			}
		}
		late := map[string]delivery{
			"member": env.comment(number, "member", "/test"), "eve": env.comment(number, "eve", "/test"),
		}
		env.closePull(number, false)
		// the write permission, and the state of the pull request
		for user, most := range map[string]int{"member": 3, "eve": 2} {
			before := env.git.log()
			env.deliver(late[user], http.StatusAccepted)
			env.awaitAllSettled(soon)
			after := env.git.log()
			if calls := after.requests[len(before.requests):]; len(calls) > most || len(after.writes) != len(before.writes) {
				t.Errorf("the comment of %s on what has been closed since costs %+v", user, calls)
			}
			if event := env.recordOf(late[user]); len(event.Status.Runs) != 0 || event.Status.Plan.Approval != nil {
				t.Errorf("the comment of %s on what has been closed since: %+v", user, event.Status)
			}
		}
		before := env.git.log()
		env.deliver(env.comment(number, "member", "/test"), http.StatusOK)
		if after := env.git.log(); len(after.requests) != len(before.requests) {
			t.Errorf("a comment on what is closed costs %+v", after.requests[len(before.requests):])
		}
		env.requireRunCount(0)
	})
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// requireDeclined waits until a comment's event is settled. It requires that nothing was started,
// and a message that contains the words.
func (env *environment) requireDeclined(d delivery, words ...string) {
	env.t.Helper()
	env.requireDisposition(d, v1alpha1.DispositionIgnored, "NotApproved")
	for _, word := range words {
		if message := env.recordOf(d).Status.Plan.Message; !strings.Contains(message, word) {
			env.t.Errorf("the reason is %q, want %q in it", message, word)
		}
	}
}

// S21, S24: an untrusted user's pull request runs once another user with write access has approved
// its commit, in a comment that names the commit or not. The check that waited for approval ends.
// Later pushes wait again.
func TestApprovalRunsOneCommit(t *testing.T) {
	forBothServices(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.git.grant("member", "write")
		number, first := env.openForkPull("stranger")
		env.deliver(env.opened(number), http.StatusAccepted)
		if check := env.awaitCheck(first, application, "queued", soon); !strings.Contains(check.Title, "Pending approval") {
			t.Errorf("the check says %q, want Pending approval", check.Title)
		}
		own, strange := env.comment(number, "stranger", "/ok-to-test"), env.comment(number, "eve", "/ok-to-test "+first)
		env.deliver(own, http.StatusAccepted)
		env.deliver(strange, http.StatusAccepted)
		env.requireDeclined(own, "cannot approve it")
		env.requireDeclined(strange, "no write access")
		wrong := env.comment(number, "member", "/ok-to-test "+strings.Repeat("0", 40))
		env.deliver(wrong, http.StatusAccepted)
		env.requireDeclined(wrong, first)
		env.requireRunCount(0)

		approval := env.comment(number, "member", "I have read it.\n/ok-to-test "+first[:12])
		env.deliver(approval, http.StatusAccepted)
		env.awaitCheck(first, checkName("pr"), "success", soon)
		env.awaitCheck(first, application, "skipped", soon)
		record := env.awaitSettledDelivery(approval)
		if given := record.Status.Plan.Approval; given == nil || given.By != "member" || given.Event != record.Name ||
			record.Status.Plan.HeadSHA != first {
			t.Errorf("on record is %+v at %s, want member's approval of %s", given, record.Status.Plan.HeadSHA, first)
		}
		if note := record.Status.Runs[0].Note; !strings.Contains(note, "member has approved commit "+first) {
			t.Errorf("the run's check has the note %q", note)
		}
		env.awaitRepositoryEvent("Approved", "member has approved commit "+first)

		env.deliver(env.reopen(number, "stranger"), http.StatusAccepted)
		env.eventually(soon, "the approved commit runs when it is opened again", func() error {
			if got := env.runsBySHA(); got[first] != 2 {
				return fmt.Errorf("PipelineRuns by commit: %v", got)
			}
			return nil
		})
		second, pushed := env.pushText("stranger", number, "stranger", "more")
		env.deliver(pushed, http.StatusAccepted)
		env.awaitPending(pushed)
		if got := env.runsBySHA(); got[second] != 0 || len(env.runs()) != 2 {
			t.Errorf("PipelineRuns by commit: %v, want none of %s", got, second)
		}
	})
}

// S21: when the head moves after the approving comment, the new head does not run, whichever
// delivery comes first. The commit that was approved does not run either, because it is no longer
// the head.
func TestMovedHeadIsNotApproved(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.git.grant("member", "write")
		for i, words := range []string{"/ok-to-test", "/test", "/ok-to-test"} {
			user := fmt.Sprintf("stranger%d", i)
			number, first := env.openForkPull(user)
			env.deliver(env.opened(number), http.StatusAccepted)
			comment := env.comment(number, "member", words)
			second, pushed := env.pushText(user, number, user, "more")
			switch i {
			case 0, 1: // the push comes first
				env.deliver(pushed, http.StatusAccepted)
				env.awaitPending(pushed)
				env.deliver(comment, http.StatusAccepted)
			default: // it comes too late
				env.deliver(comment, http.StatusAccepted)
			}
			env.requireDeclined(comment, second)
			if i == 0 {
				env.requireReply(number, 0, "`/ok-to-test`", second, "Nothing was started.")
			}
			if got := env.runsBySHA(); got[first]+got[second] != 0 {
				t.Errorf("%s: PipelineRuns by commit: %v, want none", words, got)
			}
		}
	})
}

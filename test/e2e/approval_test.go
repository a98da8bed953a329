// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// declines waits until a comment is settled, and requires that it started nothing, with a sentence
// that has the words.
func (w *world) declines(d delivery, words ...string) {
	w.t.Helper()
	w.disposed(d, v1alpha1.DispositionIgnored, "NotApproved")
	for _, word := range words {
		if message := w.recordOf(d).Status.Plan.Message; !strings.Contains(message, word) {
			w.t.Errorf("the reason is %q, want %q in it", message, word)
		}
	}
}

// S21, S24: a stranger's pull request runs once somebody else who may write has approved its
// commit, by comments that name it or not. The check that asked for it ends, and what is pushed
// later waits again.
func TestS21AnApprovalRunsOneCommit(t *testing.T) {
	t.Parallel()
	forBothServices(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.git.grant("member", "write")
		number, first := w.forkPull("stranger")
		w.deliver(w.opened(number), http.StatusAccepted)
		if check := w.checkReaches(first, application, "queued", soon); !strings.Contains(check.Title, "Pending approval") {
			t.Errorf("the check says %q, want Pending approval", check.Title)
		}
		own, strange := w.commands(number, "stranger", "/ok-to-test"), w.commands(number, "eve", "/ok-to-test "+first)
		w.deliver(own, http.StatusAccepted)
		w.deliver(strange, http.StatusAccepted)
		w.declines(own, "cannot approve it")
		w.declines(strange, "no write access")
		wrong := w.commands(number, "member", "/ok-to-test "+strings.Repeat("0", 40))
		w.deliver(wrong, http.StatusAccepted)
		w.declines(wrong, first)
		if runs := w.runs(); len(runs) != 0 {
			t.Fatalf("%d PipelineRuns, want none", len(runs))
		}

		approval := w.commands(number, "member", "I have read it.\n/ok-to-test "+first[:12])
		w.deliver(approval, http.StatusAccepted)
		w.checkReaches(first, checkName("pr"), "success", soon)
		w.checkReaches(first, application, "skipped", soon)
		record := w.settledOf(approval)
		if given := record.Status.Plan.Approval; given == nil || given.By != "member" || given.Event != record.Name || record.Status.Plan.HeadSHA != first {
			t.Errorf("on record is %+v at %s, want member's approval of %s", given, record.Status.Plan.HeadSHA, first)
		}
		if note := record.Status.Runs[0].Note; !strings.Contains(note, "member has approved commit "+first) {
			t.Errorf("the run is told with %q", note)
		}
		w.repositoryTold("Approved", "member has approved commit "+first)

		w.deliver(w.reopens(number, "stranger"), http.StatusAccepted)
		w.eventually(soon, "the approved commit runs when it is opened again", func() error {
			if got := w.runsBySHA(); got[first] != 2 {
				return fmt.Errorf("PipelineRuns by commit: %v", got)
			}
			return nil
		})
		second, pushed := w.pushTo("stranger", number, "stranger", "more")
		w.deliver(pushed, http.StatusAccepted)
		w.pends(pushed)
		if got := w.runsBySHA(); got[second] != 0 || len(w.runs()) != 2 {
			t.Errorf("PipelineRuns by commit: %v, want none of %s", got, second)
		}
	})
}

// S21: a head that moves after the comment does not run, whichever delivery comes first; and
// neither does the one that was commented on, which is not the head any more.
func TestS21AHeadThatMovesIsNotApproved(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.git.grant("member", "write")
		for i, words := range []string{"/ok-to-test", "/test", "/ok-to-test"} {
			user := fmt.Sprintf("stranger%d", i)
			number, first := w.forkPull(user)
			w.deliver(w.opened(number), http.StatusAccepted)
			comment := w.commands(number, "member", words)
			second, pushed := w.pushTo(user, number, user, "more")
			switch i {
			case 0, 1: // the push comes first
				w.deliver(pushed, http.StatusAccepted)
				w.pends(pushed)
				w.deliver(comment, http.StatusAccepted)
			default: // it does not come in time
				w.deliver(comment, http.StatusAccepted)
			}
			w.declines(comment, second)
			if i == 0 {
				w.answered(number, 0, "`/ok-to-test`", second, "Nothing was started.")
			}
			if got := w.runsBySHA(); got[first]+got[second] != 0 {
				t.Errorf("%s: PipelineRuns by commit: %v, want none", words, got)
			}
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/report"
)

// addSettled adds n settled events of the pull request.
func (w *env) addSettled(n int, change func(*v1alpha1.GitEvent)) {
	w.t.Helper()
	for i := range n {
		w.addEvent(fmt.Sprintf("old-%d", i), "synchronize", -time.Hour, func(e *v1alpha1.GitEvent) {
			e.UID = types.UID(e.Name)
			e.Spec.Payload = v1alpha1.BlobReference{}
			e.Spec.SHA = fmt.Sprintf("%040d", i)
			e.Status.Phase, e.Status.Disposition = v1alpha1.PhaseSettled, v1alpha1.DispositionPending
			e.Status.Plan = &v1alpha1.Plan{HeadSHA: e.Spec.SHA, Reason: "PendingApproval"}
			change(e)
		})
	}
}

// cancelsNothing makes a settled event a /cancel of the author, as an older version recorded it.
func (w *env) cancelsNothing(e *v1alpha1.GitEvent) {
	e.Spec.EventType, e.Spec.SHA, e.Spec.Sender, e.Spec.Actor, e.Spec.Action = match.CommentEvent, "", "author", "", ""
	e.Spec.Comment = &v1alpha1.Comment{ID: 1}
	e.Status.Disposition = v1alpha1.DispositionCancels
	cancels := &v1alpha1.Cancellation{By: "author", Why: "author requested it in a comment", At: e.Spec.ReceivedAt}
	e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Cancels: cancels}
	e.Status.Reply = &v1alpha1.Reply{Command: "/cancel", CommentState: v1alpha1.CommentState{GivenUp: "X"}}
}

// waits returns what the event waits for.
func (w *env) waits() (waits []string) {
	for _, wait := range w.event().Status.Waits {
		waits = append(waits, wait.Step+": "+wait.Reason)
	}
	return waits
}

// An untrusted user may write any number of /cancel on the own pull request. Each settles at once,
// is not answered, makes no call about the pull request, and is no record.
func TestUntrustedCancelsSettleAtOnce(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 1990, 2001} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			t.Parallel()
			w := commands(t, "/cancel", pullFile("hello"))
			complete := 0
			w.git.complete = func(e *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
				complete++
				return w.forkAt(sha)(e)
			}
			w.setSender("author")
			w.git.canWrite = func(string) (bool, error) { return false, nil }
			w.addSettled(before, w.cancelsNothing)
			began := w.clock.Now()
			for range 20 {
				_, _ = w.reconcile()
				if w.settled() {
					break
				}
				w.advance(time.Minute)
			}
			e := w.event()
			if !w.settled() || w.clock.Now().Sub(began) > 0 {
				t.Errorf("open %t after %s: %v", !w.settled(), w.clock.Now().Sub(began), w.waits())
			}
			ignored := e.Status.Disposition == v1alpha1.DispositionIgnored
			if !ignored || e.Status.Plan.Reason != v1alpha1.NothingToCancel || e.Status.Reply != nil {
				t.Errorf("%s %+v, reply %+v", e.Status.Disposition, e.Status.Plan, e.Status.Reply)
			}
			if complete+len(w.git.replies.comments) != 0 {
				t.Errorf("%d look-ups, %d replies", complete, len(w.git.replies.comments))
			}
			if e.Labels[plumbline.SubjectLabel] != "" {
				t.Errorf("it is found as one of its pull request: %v", e.Labels)
			}
		})
	}
}

// However many events a pull request has on record, none of its events waits for ever, and each
// command works as usual.
func TestPullRequestWithManyRecordsIsDecided(t *testing.T) {
	t.Parallel()
	const many = 2050
	for name, test := range map[string]struct {
		begin func(t *testing.T) *env
		check func(t *testing.T, w *env)
	}{
		"/cancel": {func(t *testing.T) *env {
			w := commands(t, "/cancel", pullFile("hello"))
			w.addEvent("runs", "synchronize", -time.Minute, func(e *v1alpha1.GitEvent) {
				e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Reason: "Selected"}
				e.Status.Runs = []v1alpha1.Run{{Pipeline: "hello", Namespace: tenant, Name: "before-run", UID: "1"}}
			})
			return w
		}, func(t *testing.T, w *env) {
			if got := fmt.Sprint(w.cancelledOnes()); got != "[runs]" {
				t.Errorf("cancelled are %s", got)
			}
			w.wantReply("Cancelling the runs of this pull request that existed when you commented.")
		}},
		"/cancel of nothing": {func(t *testing.T) *env {
			return commands(t, "/cancel", pullFile("hello"))
		}, func(_ *testing.T, w *env) {
			w.wantReply("Found no runs of this pull request to cancel.")
		}},
		"/test": {func(t *testing.T) *env {
			return commands(t, "/test", pullFile("hello"))
		}, func(t *testing.T, w *env) {
			w.wantReply("Starts `hello`")
			if len(w.runs()) != 1 {
				t.Errorf("%d runs", len(w.runs()))
			}
		}},
		"/retest of what succeeded": {func(t *testing.T) *env {
			w := commands(t, "/retest", pullFile("hello"))
			w.addEvent("succeeded", "synchronize", -time.Minute, func(e *v1alpha1.GitEvent) {
				e.Status.Phase, e.Status.Disposition = v1alpha1.PhaseSettled, v1alpha1.DispositionRuns
				e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Reason: "Selected"}
				succeeded := &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}
				e.Status.Runs = []v1alpha1.Run{{Pipeline: "hello", Name: "hello-1", UID: "1", Result: succeeded}}
			})
			return w
		}, func(t *testing.T, w *env) {
			if e := w.event(); len(w.runs()) != 0 || e.Status.Plan.Reason != "NothingToRetest" {
				t.Errorf("%d runs, %+v", len(w.runs()), e.Status.Plan)
			}
		}},
		"/retest of what failed": {func(t *testing.T) *env {
			return commands(t, "/retest", pullFile("hello"))
		}, func(t *testing.T, w *env) {
			if len(w.runs()) != 1 {
				t.Errorf("%d runs: %+v", len(w.runs()), w.event().Status.Plan)
			}
		}},
		"/ok-to-test": {func(t *testing.T) *env {
			w := commands(t, "/ok-to-test", pullFile("hello"))
			w.git.complete = w.forkAt(sha)
			w.git.canWrite = func(user string) (bool, error) { return user == "member", nil }
			w.addEvent("head", "synchronize", -time.Minute, func(e *v1alpha1.GitEvent) {
				e.Spec.PullRequest.Author, e.Spec.PullRequest.HeadProjectID, e.Spec.Actor = "author", 99, "author"
				e.Status.Phase, e.Status.Disposition = v1alpha1.PhaseSettled, v1alpha1.DispositionPending
				e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Reason: "PendingApproval"}
			})
			return w
		}, func(t *testing.T, w *env) {
			if e := w.event(); len(w.runs()) != 1 || e.Status.Plan.Approval == nil || !e.Status.Plan.EndsPending {
				t.Errorf("%d runs, %+v", len(w.runs()), e.Status.Plan)
			}
		}},
		"an untrusted user's push": {func(t *testing.T) *env {
			w := newEnv(t, pullFile("hello"))
			w.pullRequest("synchronize", 0)
			w.edit(func(e *v1alpha1.GitEvent) {
				e.Spec.PullRequest.Author, e.Spec.PullRequest.HeadProjectID, e.Spec.Actor = "author", 99, "author"
			})
			w.git.canWrite = func(string) (bool, error) { return false, nil }
			return w
		}, func(t *testing.T, w *env) {
			if e := w.event(); e.Status.Disposition != v1alpha1.DispositionPending || len(w.git.checks) != 1 {
				t.Errorf("%s, %d checks", e.Status.Disposition, len(w.git.checks))
			}
		}},
		"a push that comes after a close": {func(t *testing.T) *env {
			w := newEnv(t, pullFile("hello"))
			w.pullRequest("synchronize", -10*time.Minute)
			w.addEvent("closed", "closed", -5*time.Minute, func(e *v1alpha1.GitEvent) {
				e.Status.Phase, e.Status.Disposition = v1alpha1.PhaseSettled, v1alpha1.DispositionCancels
				cancels := &v1alpha1.Cancellation{Why: "rita closed it", At: *e.Spec.HappenedAt}
				e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Cancels: cancels}
			})
			return w
		}, func(t *testing.T, w *env) {
			if e := w.event(); len(w.runs()) != 0 || e.Status.Plan.Reason != "Cancelled" {
				t.Errorf("%d runs, %+v", len(w.runs()), e.Status.Plan)
			}
		}},
		"a close": {func(t *testing.T) *env {
			w := newEnv(t, pullFile("hello"))
			w.pullRequest("closed", 0)
			w.addEvent("runs", "synchronize", -time.Minute)
			return w
		}, func(t *testing.T, w *env) {
			if got := fmt.Sprint(w.cancelledOnes()); got != "[runs]" {
				t.Errorf("cancelled are %s", got)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := test.begin(t)
			w.addSettled(many, func(e *v1alpha1.GitEvent) {
				e.Spec.PullRequest.Author, e.Spec.PullRequest.HeadProjectID, e.Spec.Actor = "author", 99, "author"
			})
			w.ends = corev1.ConditionTrue
			w.until(w.settled)
			test.check(t, w)
		})
	}
}

// An author who may only cancel is answered if that has stopped a run, and at most once a minute.
func TestUntrustedCancelIsAnsweredIfItStopsARun(t *testing.T) {
	t.Parallel()
	w := commands(t, "/cancel", pullFile("hello"))
	w.git.complete = w.forkAt(sha)
	w.setSender("author")
	w.git.canWrite = func(string) (bool, error) { return false, nil }
	w.addEvent("runs", "synchronize", -time.Minute, func(e *v1alpha1.GitEvent) {
		e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Reason: "Selected"}
		e.Status.Runs = []v1alpha1.Run{{Pipeline: "hello", Namespace: tenant, Name: "before-run", UID: "1"}}
	})
	before := w.event()
	before.Name = "comment-before"
	w.process().steps.Report.Pending.Reply(report.PendingReportOf(before), w.clock.Now())
	for range 5 { // that one is answered in this minute
		_, _ = w.reconcile()
		w.advance(10 * time.Second)
	}
	if e := w.event(); len(w.git.replies.comments) != 0 || e.Status.Reply.Begun != nil {
		t.Errorf("answered %q, %+v", w.git.replies.comments, e.Status.Reply)
	}
	w.until(w.settled)
	w.wantReply("**author**: `/cancel`", "the runs of this pull request")
	if e := w.event(); !e.Status.Reply.Untrusted || e.Labels[plumbline.SubjectLabel] == "" {
		t.Errorf("reply %+v, labels %v", e.Status.Reply, e.Labels)
	}
	if got := fmt.Sprint(w.cancelledOnes()); got != "[runs]" {
		t.Errorf("cancelled are %s", got)
	}
}

// Comments of untrusted users without a command cost one call in two minutes, and are no records.
func TestUntrustedCommentsMakeNoCalls(t *testing.T) {
	t.Parallel()
	w := commands(t, "nice work", pullFile("hello"))
	w.setSender("stranger")
	w.git.canWrite = func(string) (bool, error) { return false, nil }
	w.git.complete = func(*v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
		t.Error("the Git service is asked about the pull request")
		return nil, errRefused
	}
	_, _ = w.reconcile()
	if e := w.event(); !e.Settled() || e.Status.Plan.Reason != "NotApproved" || e.Labels[plumbline.SubjectLabel] != "" {
		t.Errorf("%+v, labels %v", e.Status, e.Labels)
	}
}

// A decision that would have to ignore records is not made: the event settles, starts nothing, and
// its author gets the reason.
func TestTooManyRecordsEndTheEvent(t *testing.T) {
	t.Parallel()
	w := commands(t, "/retest", pullFile("hello"))
	w.addSettled(16_001, func(*v1alpha1.GitEvent) {})
	for range 3 {
		_, _ = w.reconcile()
	}
	if !w.settled() || len(w.runs()) != 0 {
		t.Errorf("over %t, %d runs: %v", w.settled(), len(w.runs()), w.waits())
	}
	w.wantReply("Nothing was started", "more than 16000 events of this pull request or commit are on record")
}

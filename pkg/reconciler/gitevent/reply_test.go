// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// commands returns an env with a command of member, who is known to be authorized.
func commands(t *testing.T, body string, files ...git.File) *env {
	t.Helper()
	w := commented(t, body, files...)
	w.edit(func(e *v1alpha1.GitEvent) {
		at := metav1.NewTime(w.clock.Now())
		e.Spec.HappenedAt, e.Spec.ReceivedAt = &at, at
		e.Labels = map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
	})
	return w
}

// wantReply requires one comment of ours with the words.
func (w *env) wantReply(words ...string) {
	w.t.Helper()
	if len(w.git.replies.comments) != 1 {
		w.t.Fatalf("%d comments, want one: %q", len(w.git.replies.comments), w.git.replies.comments)
	}
	for _, word := range words {
		if !strings.Contains(w.git.replies.comments[0], word) {
			w.t.Errorf("the comment has no %q: %s", word, w.git.replies.comments[0])
		}
	}
}

// An authorized user gets the result of a command.
func TestCommandIsAnswered(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body string
		want string
	}{
		"started": {"/test", "**member**: `/test` at " + sha + "\n\nStarts `hello`."},
		"an unknown name": {"/test helo",
			"`/test helo` at " + sha + "\n\nNothing was started: no pipeline is called helo. Did you mean hello? (All: hello)"},
		"two commands":          {"/test\n/cancel", "Nothing was done: this comment has two different commands, /test and /cancel"},
		"a bad argument":        {"/test hello x=1", "Nothing was started: the Repository has no param x"},
		"a commit that is none": {"/ok-to-test 1111111111", "commit 1111111111, and the head of the pull request is " + sha},
		"cancelled":             {"/cancel hello", "runs of `hello` to cancel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := commands(t, test.body, pullFile("hello"))
			if strings.HasPrefix(test.body, "/ok-to-test") {
				w.git.canWrite = func(user string) (bool, error) { return user == "member", nil }
			}
			w.settle(corev1.ConditionTrue)
			w.wantReply(status.ReplyMark, test.want)
			if reply := w.event().Status.Reply; reply == nil || reply.Begun != nil || reply.Accepted == "" ||
				w.git.replies.edits != 0 {
				t.Errorf("on record is %+v after %d edits", reply, w.git.replies.edits)
			}
		})
	}
}

// S17, S24: a user who is not authorized, or may not be, gets no answer, nor does a comment that is
// no command.
func TestUnauthorizedCommandIsNotAnswered(t *testing.T) {
	t.Parallel()
	no := func(string) (bool, error) { return false, nil }
	for name, change := range map[string]func(*env){
		"an untrusted user":                 func(w *env) { w.git.canWrite = no },
		"an untrusted user's contradiction": func(w *env) { w.setSecondPayload("/test\n/cancel"); w.git.canWrite = no },
		"an untrusted user's question":      func(w *env) { w.setSecondPayload("/why"); w.git.canWrite = no },
		"a question of the author":          func(w *env) { w.setSecondPayload("/why"); w.setSender("author"); w.git.canWrite = no },
		"a comment that is no command":      func(w *env) { w.setSecondPayload("I will /test it") },
		"an approval of the author":         func(w *env) { w.setSecondPayload("/ok-to-test"); w.setSender("author") },
		"a look-up that fails": func(w *env) {
			w.git.canWrite = func(string) (bool, error) { return false, errDown }
		},
		"a pull request that is not open": func(w *env) {
			w.git.complete = func(*v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
				return nil, fault.Ignoredf("PullRequestClosed", "it is closed")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := commands(t, "/test", pullFile("hello"))
			change(w)
			for range 5 {
				_, _ = w.reconcile()
				w.advance(time.Minute)
			}
			if len(w.git.replies.comments) != 0 || w.event().Status.Reply != nil || w.count("put reply") != 0 {
				t.Errorf("comments %q, on record %+v", w.git.replies.comments, w.event().Status.Reply)
			}
		})
	}
}

// setSecondPayload stores another body than the one that the env started with.
func (w *env) setSecondPayload(body string) {
	w.edit(func(e *v1alpha1.GitEvent) { e.Spec.Payload.Name = "" })
	for _, payload := range w.payloads() {
		w.must(w.own.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("eventpayloads"), system, payload))
	}
	w.setPayload(body)
}

func (w *env) payloads() (names []string) {
	list, err := w.own.PlumblineV1alpha1().EventPayloads(system).List(context.Background(), metav1.ListOptions{})
	w.must(err)
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names
}

func (w *env) setSender(sender string) { w.edit(func(e *v1alpha1.GitEvent) { e.Spec.Sender = sender }) }

// Whatever call of a command's event fails, is lost, or is the last before the process dies, there
// is one run, and one comment.
func TestReplySurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T) *env {
		w := commands(t, "/test", pullFile("hello"))
		w.git.looks(w)
		return w
	}, func(t *testing.T, w *env) {
		if n := len(w.runs()); n > 1 {
			t.Errorf("%d runs", n)
		}
		w.wantReply("`/test` at " + sha)
	})
}

// looks finishes each run as soon as it exists.
func (g *fakeGit) looks(w *env) {
	g.asked = func(status.Check) error { w.finishRuns(corev1.ConditionTrue); return nil }
}

// A problem that somebody must fix is reported once, and the reply is given up; the run goes on and
// its check is true.
func TestRefusedReplyIsGivenUp(t *testing.T) {
	t.Parallel()
	w := commands(t, "/test", pullFile("hello"))
	w.git.replies.asked = func() error {
		return fault.Operatorf(fault.ReasonPermissionMissing, "403 Unable to create comment because issue is locked.")
	}
	var told []string
	for range 6 {
		_ = w.reconcileTelling(&told)
		w.advance(6 * time.Minute)
		w.finishRuns(corev1.ConditionTrue)
	}
	e := w.event()
	if !e.Settled() || e.Status.Reply.GivenUp != fault.ReasonPermissionMissing ||
		w.git.checks["1"].Conclusion != status.Success || w.count("put reply") != 1 {
		t.Errorf("%s, %+v, checks %v after %d attempts", e.Status.Outcome, e.Status.Reply, w.git.checks, w.count("put reply"))
	}
	if len(told) != 1 || !strings.Contains(told[0], "issue is locked") {
		t.Errorf("the Repository is told %q, want it once", told)
	}
}

// A problem that may pass is retried for an hour, also if its reason changes each time, and ends
// nothing else.
func TestFailingReplyIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, reasons := range map[string]int{"one reason": 1, "several": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failsForLong(t, reasons)
		})
	}
}

func failsForLong(t *testing.T, reasons int) {
	w := commands(t, "/test", pullFile("hello"))
	asked := 0
	w.git.replies.asked = func() error {
		asked++
		return fault.Transientf(fmt.Sprint("Reason", asked%reasons), "502")
	}
	var told []string
	began := w.clock.Now()
	for !w.settled() && w.clock.Since(began) < 3*time.Hour {
		_ = w.reconcileTelling(&told)
		w.advance(5 * time.Minute)
		w.finishRuns(corev1.ConditionTrue)
	}
	if lasted := w.clock.Since(began); !w.settled() || lasted < time.Hour || lasted > 2*time.Hour ||
		w.event().Status.Reply.GivenUp == "" {
		t.Errorf("over %t after %s: %+v", w.settled(), lasted, w.event().Status.Reply)
	}
	if w.git.checks["1"].Conclusion != status.Success || len(w.runs()) != 1 {
		t.Errorf("checks %v, %d runs", w.git.checks, len(w.runs()))
	}
}

// Another process may have sent a comment that is not shown yet: nothing is written before it is
// shown or known to be lost.
func TestNewLeaderWaitsForALateReply(t *testing.T) {
	t.Parallel()
	w := commands(t, "/test helo", pullFile("hello"))
	w.hook = func(_ int, call string) outcome { return outcome{kill: call == "put reply"} }
	if killed, _ := w.reconcile(); !killed {
		t.Fatal("no reply is sent")
	}
	w.hook = nil
	for range 5 {
		_, err := w.reconcile()
		if wait, known := backoff.KnownWait(err); !known || wait <= 0 || w.settled() || w.count("put reply") != 1 {
			t.Fatalf("it comes back after %s (%v) having written %q", wait, err, w.git.replies.comments)
		}
		w.advance(8 * time.Second)
	}
	w.git.replies.comments = []string{status.ReplyMark + " late"} // the first process'
	w.advance(6 * time.Second)
	_, _ = w.reconcile()
	w.wantReply("no pipeline is called helo")
	if !w.settled() || w.git.replies.edits != 1 {
		t.Errorf("over %t after %d edits", w.settled(), w.git.replies.edits)
	}
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// addSecondCommand adds a second command of the pull request, given this much later, and returns
// its name.
func (w *env) addSecondCommand(after time.Duration, change func(*v1alpha1.GitEvent)) string {
	w.t.Helper()
	name := fmt.Sprint("comment-", after)
	first := w.event()
	packed, err := blob.Pack([]byte("/test helo"))
	w.must(err)
	ref, chunks := packed.Chunks(system, name, name)
	for _, chunk := range chunks {
		w.must(w.own.Tracker().Add(chunk))
	}
	w.addEvent(name, "", after, func(e *v1alpha1.GitEvent) {
		e.UID = "uid-of-second"
		e.Spec.PullRequest.Author, e.Spec.PullRequest.HeadProjectID = "author", 0
		e.Spec.EventType, e.Spec.SHA, e.Spec.Sender, e.Spec.Actor, e.Spec.Comment = match.CommentEvent, "", "rita", "",
			&v1alpha1.Comment{ID: 10}
		e.Spec.BaseRef, e.Spec.HeadRef, e.Spec.HeadURL, e.Spec.Commit, e.Spec.Headers = "", "", "", nil, first.Spec.Headers
		e.Spec.Payload = ref
		if change != nil {
			change(e)
		}
	})
	return name
}

// Two commands of one pull request share one comment, whichever is reconciled first, and also if a
// process starts while another one is writing. The newer one is on top.
func TestTwoCommandsShareOneComment(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{"the second one is newer": time.Second,
		"it is older": -time.Second} {
		for _, meanwhile := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/meanwhile ", meanwhile), func(t *testing.T) {
				t.Parallel()
				w := commands(t, "/test helo", pullFile("hello"))
				other := w.addSecondCommand(later, nil)
				if meanwhile {
					successor := w.successorOf(other)
					w.git.replies.looked = func() {
						for range 3 {
							successor()
						}
					}
				}
				for range 10 {
					_, _ = w.reconcileEvent("push-1")
					_, _ = w.reconcileEvent(other)
					w.advance(30 * time.Second)
				}
				w.wantReply("**member**: `/test helo`", "**rita**: `/test helo`")
				newest, _, _ := strings.Cut(w.git.replies.comments[0], "Commands before")
				if strings.Contains(newest, "**rita**") != (later > 0) {
					t.Errorf("on top is %s", newest)
				}
				if !w.settled() || !w.eventNamed(other).Settled() {
					t.Errorf("%+v and %+v", w.event().Status.Reply, w.eventNamed(other).Status.Reply)
				}
			})
		}
	}
}

// An unanswered reply may still take effect, also if the status that says so cannot be written.
// Nothing is sent before that is over.
func TestUnrecordedLateReplyIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := commands(t, "/test helo", pullFile("hello"))
	sent := false
	w.hook = func(_ int, call string) outcome {
		switch {
		case call == "put reply":
			sent = true
			return outcome{
				err: &fault.Error{Class: fault.Transient, Reason: fault.ReasonTimeout, Message: "no answer", Unknown: true},
			}
		case sent && call == "update gitevents/status":
			return outcome{err: errConflict}
		}
		return outcome{}
	}
	_, _ = w.reconcile()
	w.hook = nil
	for range 5 {
		w.advance(8 * time.Second)
		if _, _ = w.reconcile(); w.count("put reply") != 1 {
			t.Fatalf("after %d attempts there are %q", w.count("put reply"), w.git.replies.comments)
		}
	}
	w.git.replies.comments = []string{status.ReplyMark + " late"}
	w.advance(20 * time.Second)
	_, _ = w.reconcile()
	w.wantReply("no pipeline is called helo")
	if !w.settled() || w.git.replies.edits != 1 {
		t.Errorf("over %t after %d edits: %+v", w.settled(), w.git.replies.edits, w.event().Status.Reply)
	}
}

// Anybody may write /cancel on their own pull request, as often as they like. A command that is not
// in the comment any more does not wait.
func TestOldCommandsAreNotAnswered(t *testing.T) {
	t.Parallel()
	w := commands(t, "/test helo", pullFile("hello"))
	for i := range 5 {
		w.addSecondCommand(time.Duration(i+1)*time.Second, func(e *v1alpha1.GitEvent) {
			e.UID = types.UID(e.Name)
			e.Status.Plan, e.Status.Reply = &v1alpha1.Plan{HeadSHA: sha},
				&v1alpha1.Reply{Command: "/cancel", CommentState: begunAt(w.clock.Now())}
		})
	}
	_, _ = w.reconcile()
	if !w.settled() || w.count("put reply") != 0 {
		t.Errorf("over %t after %d attempts: %+v", w.settled(), w.count("put reply"), w.event().Status)
	}
}

// An event that has only waited has sent nothing, and writes as soon as no other event writes.
func TestWaitingReplyIsWrittenOnceTheOtherIsDone(t *testing.T) {
	t.Parallel()
	w := commands(t, "/test helo", pullFile("hello"))
	other := w.addSecondCommand(time.Second, func(e *v1alpha1.GitEvent) {
		e.Status.Plan, e.Status.Reply = &v1alpha1.Plan{HeadSHA: sha},
			&v1alpha1.Reply{Command: "/test", CommentState: begunAt(w.clock.Now())}
	})
	for range 2 {
		if _, _ = w.reconcile(); w.settled() || w.count("put reply") != 0 || w.event().Status.Reply.Begun == nil {
			t.Fatalf("it does not wait: %+v", w.event().Status.Reply)
		}
		w.advance(2 * time.Second)
	}
	ended := w.eventNamed(other)
	ended.Status.Reply.Release()
	w.must(w.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), ended, system))
	if _, _ = w.reconcile(); !w.settled() || w.count("put reply") != 1 {
		t.Errorf("over %t after %d attempts: %+v", w.settled(), w.count("put reply"), w.event().Status.Reply)
	}
}

func begunAt(at time.Time) v1alpha1.CommentState {
	return v1alpha1.CommentState{Begun: &metav1.Time{Time: at}}
}

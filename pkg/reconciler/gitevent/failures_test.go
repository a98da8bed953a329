// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// failingPull returns an env with an event of a pull request and two pipelines. The Repository has
// the comment_strategy.
func failingPull(t *testing.T, strategy string) *env {
	w := newEnv(t, pullFile("hello"), pullFile("lint"))
	w.pullRequest("opened", 0)
	w.edit(onGitHub)
	w.repository = func(r *pacv1alpha1.Repository) {
		r.Spec.Settings = &pacv1alpha1.Settings{
			Github: &pacv1alpha1.CommentSettings{CommentStrategy: strategy},
		}
	}
	return w
}

func (w *env) wantFailures(words ...string) {
	w.t.Helper()
	if len(w.git.replies.failed) != 1 || strings.Count(w.git.replies.failed[0], status.FailuresMark) != 1 {
		w.t.Fatalf("want one comment about failed pipelines: %q", w.git.replies.failed)
	}
	for _, word := range words {
		if !strings.Contains(w.git.replies.failed[0], word) {
			w.t.Errorf("the comment has no %q: %s", word, w.git.replies.failed[0])
		}
	}
}

// With on_failure, failed pipelines are listed in one comment. The next commit, whose pipelines
// succeed, changes it, and the one after that writes nothing.
func TestFailuresAreCommentedOnce(t *testing.T) {
	t.Parallel()
	w := failingPull(t, pacv1alpha1.CommentsOnFailure)
	w.settle(corev1.ConditionFalse)
	w.wantFailures("| hello | Failed", "| lint | Failed", "/retest")
	if f := w.event().Status.Failures; f == nil || f.Begun != nil || f.Accepted == "" || w.count("put reply") != 1 {
		t.Errorf("on record is %+v after %d writes", f, w.count("put reply"))
	}
	for i, name := range []string{"fixed", "next"} {
		w.addEvent(name, "synchronize", time.Duration(i+1)*time.Hour, onGitHub)
		w.settleOther(t, name)
	}
	w.wantFailures("Fixed: ")
	if w.count("put reply") != 2 || w.git.replies.edits != 1 {
		t.Errorf("%d writes, %d edits", w.count("put reply"), w.git.replies.edits)
	}
}

// No comment is written with another strategy, for a push, or if all pipelines succeed.
func TestFailuresAreNotCommented(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		strategy string
		outcome  corev1.ConditionStatus
		change   func(*v1alpha1.GitEvent)
	}{
		"by default": {"", corev1.ConditionFalse, nil},
		"update":     {"update", corev1.ConditionFalse, nil},
		"disabled":   {pacv1alpha1.CommentsDisabled, corev1.ConditionFalse, nil},
		"succeeded":  {pacv1alpha1.CommentsOnFailure, corev1.ConditionTrue, nil},
		"a push": {pacv1alpha1.CommentsOnFailure, corev1.ConditionFalse, func(e *v1alpha1.GitEvent) {
			e.Spec.PullRequest, e.Spec.Trigger, e.Spec.EventType = nil, v1alpha1.TriggerPush, "push"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := failingPull(t, test.strategy)
			if test.change != nil {
				w.edit(test.change)
				w.git.files[0] = helloFile("hello")
			}
			w.settle(test.outcome)
			if w.count("put reply") != 0 || w.event().Status.Failures != nil || w.count("create pipelineruns") == 0 {
				t.Errorf("%d writes, on record %+v", w.count("put reply"), w.event().Status.Failures)
			}
		})
	}
}

// A comment that is refused is given up; checks are not changed by it.
func TestRefusedFailuresCommentIsGivenUp(t *testing.T) {
	t.Parallel()
	w := failingPull(t, pacv1alpha1.CommentsOnFailure)
	w.git.replies.asked = func() error { return fault.Operatorf(fault.ReasonPermissionMissing, "403") }
	w.settle(corev1.ConditionFalse)
	if f := w.event().Status.Failures; f.GivenUp != fault.ReasonPermissionMissing || w.count("put reply") != 1 ||
		w.conclusions()["hello"] != status.Failure {
		t.Errorf("%+v after %d writes, checks %v", f, w.count("put reply"), w.conclusions())
	}
}

// Whatever call fails, is lost, or is the last before the process dies, there is one comment.
func TestFailuresCommentSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T) *env {
		w := failingPull(t, pacv1alpha1.CommentsOnFailure)
		w.ends = corev1.ConditionFalse
		return w
	}, func(t *testing.T, w *env) {
		var words []string
		for _, run := range w.event().Status.Runs {
			if run.Refused == nil { // a definition that was refused has a comment of its own
				words = append(words, "| "+run.Pipeline+" | Failed")
			}
		}
		w.wantFailures(words...)
	})
}

func onGitHub(e *v1alpha1.GitEvent) { e.Spec.Provider = "github" }

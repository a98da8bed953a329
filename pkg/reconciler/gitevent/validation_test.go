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
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// invalidFile is a file that is no YAML.
func invalidFile() git.File { return git.File{Path: ".tekton/bad.yaml", Data: []byte("kind: [")} }

// invalidPull returns an env with an event of a pull request, one of whose files has an error.
func invalidPull(t *testing.T) *env {
	w := newEnv(t, pullFile("hello"), invalidFile())
	w.pullRequest("opened", 0)
	return w
}

// An error in a file of .tekton is shown in one comment.
func TestValidationErrorIsCommented(t *testing.T) {
	t.Parallel()
	w := invalidPull(t)
	w.settle(corev1.ConditionTrue)
	w.wantInvalid(status.ValidationMark, "| .tekton/bad.yaml |", "push again")
	if v := w.event().Status.Validation; v == nil || v.Begun != nil || v.Accepted == "" || w.count("put reply") != 1 {
		t.Errorf("on record is %+v after %d writes", v, w.count("put reply"))
	}
}

// A later event of the pull request without errors changes the comment, and the next one writes
// nothing.
func TestValidationCommentSaysFixed(t *testing.T) {
	t.Parallel()
	w := invalidPull(t)
	w.settle(corev1.ConditionTrue)
	w.git.files = w.git.files[:1]
	for i, name := range []string{"fixed", "next"} {
		w.addEvent(name, "synchronize", time.Duration(i+1)*time.Minute)
		w.settleOther(t, name)
	}
	w.wantInvalid(status.ValidationMark, "Fixed: ")
	if w.count("put reply") != 2 || w.git.replies.edits != 1 {
		t.Errorf("%d writes, %d edits", w.count("put reply"), w.git.replies.edits)
	}
}

// An older event that is reconciled last does not change what a newer one has written.
func TestValidationOfAnOlderEventIsNotWritten(t *testing.T) {
	t.Parallel()
	w := newEnv(t, pullFile("hello"))
	w.pullRequest("opened", 0)
	w.addEvent("newer", "synchronize", time.Minute)
	w.settleOther(t, "newer")
	w.git.files = append(w.git.files, invalidFile())
	w.settle(corev1.ConditionTrue)
	if len(w.git.replies.invalid) != 0 {
		t.Errorf("comments %q", w.git.replies.invalid)
	}
}

// No comment is written for a push, with disable_all, or if nothing is wrong.
func TestValidationIsNotCommented(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*env){
		"a push": func(w *env) { w.edit(func(e *v1alpha1.GitEvent) { e.Spec.PullRequest = nil }) },
		"disabled": func(w *env) {
			w.edit(func(e *v1alpha1.GitEvent) { e.Spec.Provider = "github" })
			w.repository = func(r *pacv1alpha1.Repository) {
				r.Spec.Settings = &pacv1alpha1.Settings{Github: &pacv1alpha1.CommentSettings{
					CommentStrategy: pacv1alpha1.CommentsDisabled,
				}}
			}
		},
		"no error": func(w *env) { w.git.files = w.git.files[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := invalidPull(t)
			change(w)
			for range 4 {
				_, _ = w.reconcile()
				w.advance(time.Minute)
				w.finishRuns(corev1.ConditionTrue)
			}
			if w.count("put reply") != 0 || w.event().Status.Validation != nil {
				t.Errorf("%d writes, on record %+v", w.count("put reply"), w.event().Status.Validation)
			}
		})
	}
}

// A comment that is refused is given up; checks are not changed by it.
func TestRefusedValidationCommentIsGivenUp(t *testing.T) {
	t.Parallel()
	w := invalidPull(t)
	w.git.replies.asked = func() error { return fault.Operatorf(fault.ReasonPermissionMissing, "403") }
	w.settle(corev1.ConditionTrue)
	if v := w.event().Status.Validation; v.GivenUp != fault.ReasonPermissionMissing || w.count("put reply") != 1 ||
		w.conclusions()["hello"] != status.Success {
		t.Errorf("%+v after %d writes, checks %v", v, w.count("put reply"), w.conclusions())
	}
}

// Whatever call fails, is lost, or is the last before the process dies, there is one comment.
func TestValidationCommentSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T) *env {
		w := invalidPull(t)
		w.git.looks(w)
		return w
	}, func(t *testing.T, w *env) {
		w.wantInvalid("| .tekton/bad.yaml |")
		if n := strings.Count(w.git.replies.invalid[0], status.ValidationMark); n != 1 {
			t.Errorf("%d marks", n)
		}
	})
}

// settleOther reconciles another event until it is settled.
func (w *env) settleOther(t *testing.T, name string) {
	t.Helper()
	for range 20 {
		_, _ = w.reconcileEvent(name)
		w.advance(time.Minute)
		w.finishRuns(corev1.ConditionTrue)
	}
	if e := w.eventNamed(name); !e.Settled() {
		t.Fatalf("%s is not settled: %+v", name, e.Status)
	}
}

// wantInvalid requires one comment about the files of .tekton, with the words.
func (w *env) wantInvalid(words ...string) {
	w.t.Helper()
	if len(w.git.replies.invalid) != 1 {
		w.t.Fatalf("%d comments, want one: %q", len(w.git.replies.invalid), w.git.replies.invalid)
	}
	for _, word := range words {
		if !strings.Contains(w.git.replies.invalid[0], word) {
			w.t.Errorf("the comment has no %q: %s", word, w.git.replies.invalid[0])
		}
	}
}

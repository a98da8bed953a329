// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Whoever asks for a run is told what whoever pushes is told: what is waited for, and how it ended.
func TestRefusedCommandIsAnswered(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"it ends": true, "it does not end": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := commented(t, "/test hello", helloFile("hello"))
			w.edit(func(e *v1alpha1.GitEvent) { e.Spec.ReceivedAt = metav1.NewTime(w.clock.Now()) })
			w.git.filesErr = errBlob
			w.retryFor(time.Hour)
			w.wantShown(t, "queued", "Waiting for the Git service", "reading .tekton/a.yaml")
			w.wantAnswer(t, "Nothing is decided: reading .tekton at ", "tarted")
			if !ends {
				var told []string
				w.reconcileEvery(30*time.Minute, 4*oneDay, &told)
				w.wantGivenUp("GivenUp", told)
				w.wantShown(t, "completedcancelled")
				w.wantAnswer(t, "reading .tekton/a.yaml", "Starts")
				return
			}
			w.git.filesErr = nil
			w.settle(corev1.ConditionTrue)
			w.wantShown(t, "completedskipped")
			w.wantAnswer(t, "Starts `hello`.", ".tekton")
			if got := w.conclusions()["hello"]; got != status.Success {
				t.Errorf("hello: %q", got)
			}
		})
	}
}

// What somebody remarks beside may be for no pipeline: it leaves no trace while that is not known.
func TestRefusedCommentIsNotAnswered(t *testing.T) {
	t.Parallel()
	w := commented(t, "looks good to me", annotated("hello", "on-comment: ^/deploy"))
	w.git.filesErr = errBlob
	w.retryFor(2 * time.Hour)
	if len(w.git.writes)+len(w.git.replies.comments) != 0 {
		t.Errorf("it was told %v, %q", w.git.writes, w.git.replies.comments)
	}
}

// wantAnswer compares with the comment that answers commands.
func (w *env) wantAnswer(t *testing.T, says, not string) {
	t.Helper()
	said := strings.Join(w.git.replies.comments, "")
	if !strings.Contains(said, says) || strings.Contains(said, not) {
		t.Errorf("the answer is %q, want %q and not %q", said, says, not)
	}
}

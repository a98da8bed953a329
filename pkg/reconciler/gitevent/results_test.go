// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// resultsIn returns failingPull with a Git service whose checks have no room for results.
func resultsIn(t *testing.T, strategy string) *env {
	w := failingPull(t, strategy)
	w.git.replies.results = map[string]*[]string{}
	return w
}

// results returns the comments about results. A test fails if a pipeline has several.
func (w *env) results() (all []string) {
	w.t.Helper()
	for _, mark := range slices.Sorted(maps.Keys(w.git.replies.results)) {
		of := *w.git.replies.results[mark]
		if len(of) > 1 {
			w.t.Errorf("a pipeline has several comments: %q", of)
		}
		all = append(all, of...)
	}
	return all
}

func (w *env) wantResults(count int, words string) {
	w.t.Helper()
	all := w.results()
	if len(all) != count || len(w.git.replies.failed) != 0 {
		w.t.Fatalf("the comments are %q and %q, want %d about results", all, w.git.replies.failed, count)
	}
	for _, one := range all {
		if !strings.Contains(one, words) {
			w.t.Errorf("the comment has no %q: %s", words, one)
		}
	}
}

// Each strategy writes at most one comment for each pipeline. The failures need no other comment.
func TestResultsAreCommentedOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		strategy        string
		outcome         corev1.ConditionStatus
		comments, edits int
	}{
		"by default":                {"", corev1.ConditionFalse, 2, 2},
		"on_failure, failed":        {pacv1alpha1.CommentsOnFailure, corev1.ConditionFalse, 2, 2},
		"on_failure, succeeded":     {pacv1alpha1.CommentsOnFailure, corev1.ConditionTrue, 0, 0},
		"disable_all":               {pacv1alpha1.CommentsDisabled, corev1.ConditionFalse, 0, 0},
		"update, as in the default": {"update", corev1.ConditionTrue, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := resultsIn(t, test.strategy)
			w.settle(test.outcome)
			title := map[corev1.ConditionStatus]string{corev1.ConditionFalse: "Failed", corev1.ConditionTrue: "Success"}
			w.wantResults(test.comments, "**: "+title[test.outcome])
			w.addEvent("next", "synchronize", time.Hour, onGitHub)
			w.settleOther(t, "next")
			w.wantResults(test.comments, "**: Success")
			if w.git.replies.edits != test.edits {
				t.Errorf("%d edits, want %d", w.git.replies.edits, test.edits)
			}
		})
	}
}

// A newer event runs the pipelines again before those of the older one have finished. The commit
// shows the newer results, and so do the comments.
func TestResultOfAnOlderRunReplacesNone(t *testing.T) {
	t.Parallel()
	w := resultsIn(t, "")
	for range 3 {
		_, _ = w.reconcile()
		w.advance(time.Second)
	}
	w.addEvent("again", "reopened", time.Second, onGitHub)
	for range 3 {
		_, _ = w.reconcileEvent("again")
		w.advance(time.Second)
	}
	if len(w.runs()) != 4 {
		t.Fatalf("%d runs, want those of both events", len(w.runs()))
	}
	w.settle(corev1.ConditionFalse)
	w.wantResults(0, "")
	w.settleOther(t, "again")
	w.wantResults(2, "**: Failed")
}

// Whatever call fails, is lost, or is the last before the process dies, each pipeline has one
// comment, and each check its result.
func TestResultsSurviveAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T) *env {
		w := resultsIn(t, pacv1alpha1.CommentsOnFailure)
		w.ends = corev1.ConditionFalse
		return w
	}, func(t *testing.T, w *env) {
		failed := 0
		for _, run := range w.event().Status.Runs {
			if run.Refused == nil { // a definition that was refused has a comment of its own
				failed++
			}
		}
		w.wantResults(failed, "**: Failed")
		for pipeline, conclusion := range w.conclusions() {
			if conclusion != status.Failure {
				t.Errorf("the check of %s says %s", pipeline, conclusion)
			}
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// questioned returns an env with a /why on a pull request whose head commit has an event with these
// results.
func questioned(t *testing.T) *env {
	t.Helper()
	w := commands(t, "/why", pullFile("hello"))
	w.addEvent("pull-1", "opened", -time.Minute, func(e *v1alpha1.GitEvent) {
		e.UID, e.Spec.Payload = "uid-of-pull", v1alpha1.BlobReference{}
		e.Status.Phase, e.Status.Disposition = v1alpha1.PhaseSettled, v1alpha1.DispositionRuns
		e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Reason: "Selected", Decisions: []v1alpha1.Decision{
			{File: ".tekton/a.yaml", Pipeline: "build", Reason: "selected: on-event is [pull_request]"},
			{File: ".tekton/b.yaml", Pipeline: "docs", Reason: "no changed file matches docs/**"},
		}}
		e.Status.Runs = []v1alpha1.Run{
			{Pipeline: "build", Namespace: "ci", Name: "build-1", UID: "u", Result: &v1alpha1.Result{
				Outcome: v1alpha1.OutcomeFailed, Message: "step test exited with code 1",
			}},
		}
	})
	return w
}

// A /why is answered with what became of each pipeline. It starts nothing and touches no check.
func TestWhyIsAnswered(t *testing.T) {
	t.Parallel()
	w := questioned(t)
	w.settle(corev1.ConditionTrue)
	w.wantReply(status.ReplyMark, "**member**: `/why` at "+sha,
		"* `build` started and failed: step test exited with code 1",
		"* `docs` did not start: no changed file matches docs/\\*\\*")
	if n := len(w.runs()); n != 0 || len(w.git.checks) != 0 || len(w.event().Status.Checks) != 0 {
		t.Errorf("%d runs, checks %v", n, w.git.checks)
	}
	if e := w.event(); e.Status.Disposition != v1alpha1.DispositionIgnored || e.Status.Plan.Reason != v1alpha1.Explained {
		t.Errorf("on record is %s, %+v", e.Status.Disposition, e.Status.Plan)
	}
}

// The answer says so if no event of the commit is on record.
func TestWhyWithoutRecords(t *testing.T) {
	t.Parallel()
	w := commands(t, "/why", pullFile("hello"))
	w.settle(corev1.ConditionTrue)
	w.wantReply("No event of this commit is on record")
}

// Whatever call fails, is lost, or is the last before the process dies, there is one answer.
func TestWhySurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, questioned, func(t *testing.T, w *env) {
		if n := len(w.runs()); n != 0 {
			t.Errorf("%d runs", n)
		}
		w.wantReply("`build` started and failed")
	})
}

// 100 questions in a minute are one edit of the comment, however often their events are reconciled.
// The newest of them is answered a minute later.
func TestManyQuestionsAreOneEdit(t *testing.T) {
	t.Parallel()
	w := questioned(t)
	packed, err := blob.Pack([]byte("/why"))
	w.must(err)
	names := []string{"push-1"}
	for i := range 99 {
		names = append(names, w.addSecondCommand(time.Duration(i+1)*600*time.Millisecond, func(e *v1alpha1.GitEvent) {
			e.UID = types.UID(fmt.Sprint("uid-", i))
			ref, chunks := packed.Chunks(system, e.Name+"-why", e.Name)
			for _, chunk := range chunks {
				w.must(w.own.Tracker().Add(chunk))
			}
			e.Spec.Payload = ref
		}))
	}
	for i := range names {
		for _, name := range names[max(0, i-3) : i+1] {
			_, _ = w.reconcileEvent(name)
		}
		w.advance(590 * time.Millisecond)
	}
	if n := w.count("put reply"); n != 1 || len(w.git.replies.comments) != 1 {
		t.Fatalf("%d writes, comments %q", n, w.git.replies.comments)
	}
	w.wantReply("**member**: `/why`")
	w.advance(time.Minute)
	for range 3 {
		for _, name := range names {
			_, _ = w.reconcileEvent(name)
		}
		w.advance(10 * time.Second)
	}
	if n := w.count("put reply"); n != 2 || !strings.Contains(w.git.replies.comments[0], "**rita**: `/why`") {
		t.Errorf("%d writes, comments %q", n, w.git.replies.comments)
	}
	for _, name := range names {
		if e := w.eventNamed(name); !e.Settled() {
			t.Errorf("%s is not settled: %+v", name, e.Status)
		}
	}
}

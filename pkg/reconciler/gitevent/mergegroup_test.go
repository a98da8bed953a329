// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// asMergeGroup makes an event one of a merge group, whose commit was made at this time.
func asMergeGroup(e *v1alpha1.GitEvent, action, branch string, made time.Time) {
	at := metav1.NewTime(made)
	e.Spec.Trigger, e.Spec.EventType, e.Spec.Action = v1alpha1.TriggerMergeGroup, "merge_group", action
	e.Spec.BaseRef, e.Spec.HeadRef, e.Spec.Before, e.Spec.HappenedAt = "main", branch, defaultSHA, &at
	e.Spec.PullRequest, e.Spec.ReceivedAt = nil, at
	e.Labels = map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
}

func forMergeGroups(name string) git.File {
	file := helloFile(name)
	file.Data = []byte(strings.Replace(string(file.Data), "[push]", "[merge_group]", 1))
	return file
}

// The end of a merge group cancels its runs, and not those of another event of the commit.
func TestEndOfMergeGroupStopsItsRuns(t *testing.T) {
	t.Parallel()
	const branch = "gh-readonly-queue/main/pr-1-x"
	w := newEnv(t, forMergeGroups("hello"))
	made := w.clock.Now()
	w.edit(func(e *v1alpha1.GitEvent) { asMergeGroup(e, "checks_requested", branch, made) })
	if _, err := w.reconcile(); err != nil {
		t.Error(err)
	}
	if len(w.runs()) != 1 || w.event().Status.Ref != branch {
		t.Fatalf("%d runs of %q: %+v", len(w.runs()), w.event().Status.Ref, w.event().Status.Plan)
	}
	w.addEvent("other-group", "", 0, func(e *v1alpha1.GitEvent) {
		asMergeGroup(e, "checks_requested", "gh-readonly-queue/main/pr-2-x", made)
	})
	w.addEvent("merged", "", 0, func(e *v1alpha1.GitEvent) {
		e.Spec.Trigger, e.Spec.EventType, e.Spec.Action, e.Spec.PullRequest = v1alpha1.TriggerPush, "push", "", nil
		e.Labels = map[string]string{plumbline.SubjectLabel: e.Spec.Subject()}
	})
	w.addEvent("end", "", 0, func(e *v1alpha1.GitEvent) { asMergeGroup(e, v1alpha1.ActionDestroyed, branch, made) })
	_, _ = w.reconcileEvent("end")
	if got := w.cancelledOnes(); len(got) != 1 || got[0] != "push-1" {
		t.Errorf("%v are cancelled, want push-1", got)
	}
	_, _ = w.reconcile()
	if runs := w.runs(); len(runs) != 1 || runs[0].Spec.Status != "CancelledRunFinally" {
		t.Errorf("%+v, want one cancelled PipelineRun", runs)
	}
}

// A request for checks that arrives after the end of its group starts nothing.
func TestMergeGroupPlannedAfterItsEndStartsNothing(t *testing.T) {
	t.Parallel()
	const branch = "gh-readonly-queue/main/pr-1-x"
	w := newEnv(t, forMergeGroups("hello"))
	made := w.clock.Now()
	w.edit(func(e *v1alpha1.GitEvent) { asMergeGroup(e, "checks_requested", branch, made) })
	w.addEvent("end", "", 0, func(e *v1alpha1.GitEvent) {
		asMergeGroup(e, v1alpha1.ActionDestroyed, branch, made)
		at := metav1.NewTime(made)
		e.Status.Plan = &v1alpha1.Plan{HeadSHA: sha, Cancels: &v1alpha1.Cancellation{
			Why: "the queue has ended it", At: at, Ref: "refs/heads/" + branch,
		}}
		e.Status.Disposition = v1alpha1.DispositionCancels
	})
	_, _ = w.reconcile()
	if e := w.event(); len(w.runs()) != 0 || e.Status.Disposition != v1alpha1.DispositionIgnored ||
		e.Status.Plan.Reason != "Cancelled" {
		t.Errorf("%d runs, %s: %+v", len(w.runs()), e.Status.Disposition, e.Status.Plan)
	}
}

// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// B3: an unavailable list of changed files is waited for. It is neither "nothing changed" nor a
// failure, and delays no pipeline that does not need it.
func TestUnlistedChangedFilesAreWaitedFor(t *testing.T) {
	t.Parallel()
	w := newEnv(t, annotated("docs", "on-path-change: 'docs/**'"), helloFile("hello"))
	w.git.changed, w.git.changedErr = git.Changes{Added: []string{"docs/a.md"}}, fault.Transientf("GitUnavailable", "502")
	for range 3 {
		_, _ = w.reconcile()
	}
	e := w.event()
	if got := w.reasons()["docs"]; got != "waiting: listing the changed files: 502" ||
		e.Status.GetCondition(v1alpha1.GitEventPlanned).Reason != "GitUnavailable" {
		t.Fatalf("docs: %q, conditions %v: want a wait", got, e.Status.Conditions)
	}
	if diff := cmp.Diff(map[string]status.Conclusion{"hello": ""}, w.conclusions()); diff != "" || len(w.runs()) != 1 {
		t.Fatalf("%d runs, want that of hello: %s", len(w.runs()), diff)
	}
	w.finishRuns(corev1.ConditionTrue)
	_, _ = w.reconcile()
	if e := w.event(); e.Settled() {
		t.Fatal("settled while a pipeline waits")
	}
	w.git.changedErr = nil
	w.settle(corev1.ConditionTrue)
	if diff := cmp.Diff(map[string]status.Conclusion{"hello": status.Success, "docs": status.Success},
		w.conclusions()); diff != "" || w.count("create pipelineruns") != 2 {
		t.Errorf("%d creates, want one for each pipeline: %s", w.count("create pipelineruns"), diff)
	}
}

// Nothing is recorded while the event may turn out to be for no pipeline.
func TestWhileEverythingWaitsNothingIsPlanned(t *testing.T) {
	t.Parallel()
	w := newEnv(t, annotated("docs", "on-path-change: 'docs/**'"), annotated("bug", "on-label: bug"))
	w.git.changedErr = fault.Transientf("GitUnavailable", "502")
	_, err := w.reconcile()
	if e := w.event(); err == nil || e.Status.Plan != nil || len(w.git.writes) != 0 ||
		e.Status.GetCondition(v1alpha1.GitEventPlanned).Reason != "GitUnavailable" {
		t.Fatalf("plan %+v, checks %v, conditions %v: want a wait", e.Status.Plan, w.git.writes, e.Status.Conditions)
	}
	w.git.changedErr, w.git.changed = nil, git.Changes{Added: []string{"main.go"}}
	w.settle(corev1.ConditionTrue)
	if e := w.event(); e.Status.Disposition != v1alpha1.DispositionIgnored || len(w.git.writes) != 0 {
		t.Errorf("disposition %s, checks %v: want none", e.Status.Disposition, w.git.writes)
	}
}

// If the Repository is deleted while a pipeline waits, existing runs go on and the rest ends
// without a verdict.
func TestDeletedRepositoryEndsWaitingPipelines(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.fail = func(string) int { return 503 }
	w := newEnv(t, helloFile("hello"), annotated("docs", "on-path-change: 'docs/**'"), referring("lint", "lint", "lint"))
	w.useHub(h)
	w.git.changedErr = fault.Transientf("GitUnavailable", "502")
	_, _ = w.reconcile()
	// so that it is read live
	w.repository = func(r *pacv1alpha1.Repository) { r.Spec.URL = "https://git.example/acme/renamed" }
	w.must(w.own.PipelinesascodeV1alpha1().Repositories(tenant).Delete(t.Context(), "app", metav1.DeleteOptions{}))
	w.settle(corev1.ConditionTrue)
	if diff := cmp.Diff(map[string]status.Conclusion{"hello": status.Success, "lint": status.Cancelled},
		w.conclusions()); diff != "" {
		t.Error(diff)
	}
}

func TestUnreadablePayloadIsNoFailure(t *testing.T) {
	t.Parallel()
	w := newEnv(t, annotated("one", `on-cel-expression: 'body.a == "b"'`))
	w.setPayload(`{"a": "b"}`)
	w.hook = always("get eventpayloads", errThrottled)
	_, err := w.reconcile()
	if err == nil || w.event().Status.Plan != nil || len(w.git.writes) != 0 {
		t.Errorf("error %v, plan %v, checks %v: want a wait", err, w.event().Status.Plan, w.git.writes)
	}
}

// B14: a commit never runs for both events. A look-up that fails is waited for.
func TestFailedPullRequestLookUpIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.git.pullsErr = fault.Transientf("GitUnavailable", "502")
	for range 3 {
		_, _ = w.reconcile()
	}
	if len(w.runs()) != 0 || len(w.git.writes) != 0 || w.event().Status.Plan != nil {
		t.Fatalf("%d runs, checks %v: want a wait", len(w.runs()), w.git.writes)
	}
	w.git.pullsErr, w.git.pulls = nil, []git.Pull{{Number: 3, Open: true, SHA: sha, HeadRef: "main", HeadProjectID: 5}}
	w.synchronized(0, func(e *v1alpha1.GitEvent) {
		e.Status = v1alpha1.GitEventStatus{
			Disposition: v1alpha1.DispositionRuns, Plan: &v1alpha1.Plan{HeadSHA: sha, Reason: "Selected"},
			Runs: []v1alpha1.Run{{Name: "hello-3"}},
		}
	})
	w.settle(corev1.ConditionTrue)
	if len(w.runs()) != 0 || len(w.git.writes) != 0 {
		t.Errorf("%d runs, checks %v: want none, the pull request runs it", len(w.runs()), w.git.writes)
	}
}

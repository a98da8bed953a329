// SPDX-License-Identifier: Apache-2.0

package gitevents_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

// The cache has the priority of an event, whether it cancels others or not;
// an informer trims a streamed list twice.
func TestTrimKeepsPriorities(t *testing.T) {
	t.Parallel()
	urgent := int32(7)
	event := open("urgent", "north/app")
	event.Spec.PullRequest = &v1alpha1.PullRequest{Number: 3}
	event.Status.Plan = &v1alpha1.Plan{Message: "long", Priority: &urgent}
	want := v1alpha1.Plan{Priority: &urgent}
	for range 2 {
		if kept := gitevents.Trim(gitevents.Trim(event)); !cmp.Equal(kept.Status.Plan, &want) {
			t.Errorf("%+v", kept.Status.Plan)
		}
		event.Status.Plan.Cancels = &v1alpha1.Cancellation{Why: "x"}
		want.Cancels = event.Status.Plan.Cancels
	}
}

// For a cancelled event, the cache has the events that cancel it, and each cancelled pipeline once.
// For an event that cancels others, it has what is cancelled. Other events have neither. An
// informer trims a streamed list twice.
func TestTrimKeepsCancellations(t *testing.T) {
	t.Parallel()
	const name = plumbline.CancelAnnotation + "comment-1"
	cancelled := open("cancelled", "north/app")
	cancelled.Annotations = map[string]string{name: `{"why":"x"}`, name + "1": `{"names":["a","b"],"why":"x","by":"x"}`,
		name + "2": `{"names":["b","c"],"why":"x"}`, name + "3": `{"names":["a"]}`, name + "4": "{", "other": "x"}
	cancelled.Spec.PullRequest = &v1alpha1.PullRequest{Number: 3, Title: "long"}
	want := map[string]string{
		name: `{"why":"","at":null}`, name + "1": `{"names":["a","b"],"why":"","at":null}`,
		name + "2": `{"names":["c"],"why":"","at":null}`, name + "3": "", name + "4": "",
	}
	if kept := gitevents.Trim(gitevents.Trim(cancelled)); !cmp.Equal(kept.Annotations, want) ||
		kept.Spec.PullRequest.Title != "" || kept.Status.Plan != nil {
		t.Errorf("%+v", kept)
	}
	cancels := open("cancels", "north/app")
	cancels.Spec.PullRequest, cancels.Spec.Action = &v1alpha1.PullRequest{Number: 3, Title: "long"}, "closed"
	cancels.Spec.Repository.UID, cancels.Spec.Repository.URL = "uid", "https://git.example/north/app"
	cancels.Status.Plan = &v1alpha1.Plan{Message: "long", Cancels: &v1alpha1.Cancellation{Why: "x", At: metav1.Now()}}
	kept := gitevents.Trim(gitevents.Trim(cancels))
	if !cmp.Equal(kept.Status.Plan, &v1alpha1.Plan{Cancels: cancels.Status.Plan.Cancels}) ||
		!cmp.Equal(kept.Spec.PullRequest, &v1alpha1.PullRequest{Number: 3}) ||
		!kept.Spec.Closes() || !cmp.Equal(kept.Spec.Repository, cancels.Spec.Repository) {
		t.Errorf("%+v", kept)
	}
}

// The cache has what shows which of several events is the newest: commits, branch or pull request,
// times, and which event cancels which.
func TestTrimKeepsWhatOrdersEvents(t *testing.T) {
	t.Parallel()
	e := open("comment", "north/app")
	at := metav1.Now()
	e.Labels = map[string]string{plumbline.SubjectLabel: "s", "other": "x"}
	e.Spec.SHA, e.Spec.Before, e.Spec.BaseRef, e.Spec.HappenedAt = "b", "a", "refs/heads/main", &at
	e.Spec.Comment, e.Spec.Rerun = &v1alpha1.Comment{ID: 3, Body: "long"}, &v1alpha1.Rerun{Check: "long"}
	e.Status.Plan = &v1alpha1.Plan{HeadSHA: "b", Ref: "refs/heads/x", Message: "long", At: &at,
		Decisions: []v1alpha1.Decision{{Reason: "long"}, {Reason: "long", Open: true}}}
	e.Status.Runs = []v1alpha1.Run{{Name: "run", Pipeline: "build", CancelInProgress: true, Note: "long"}}
	kept := gitevents.Trim(gitevents.Trim(e))
	want := open("comment", "north/app")
	want.Labels = map[string]string{plumbline.SubjectLabel: "s"}
	want.Spec.SHA, want.Spec.Before, want.Spec.BaseRef, want.Spec.HappenedAt = "b", "a", "refs/heads/main", &at
	want.Spec.Comment, want.Spec.Rerun = &v1alpha1.Comment{ID: 3}, &v1alpha1.Rerun{}
	want.Status.Plan = &v1alpha1.Plan{
		HeadSHA: "b", Ref: "refs/heads/x", At: &at, Decisions: []v1alpha1.Decision{{Open: true}},
	}
	want.Status.Runs = []v1alpha1.Run{{Name: "run", Pipeline: "build", CancelInProgress: true}}
	if d := cmp.Diff(want, kept); d != "" {
		t.Error(d)
	}
}

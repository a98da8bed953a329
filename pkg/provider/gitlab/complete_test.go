// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

func (b bench) completes(t *testing.T, event *v1alpha1.GitEventSpec) *v1alpha1.GitEventSpec {
	t.Helper()
	got, err := b.client.Complete(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// wantFault checks that an event is not confirmed.
func (b bench) wantFault(t *testing.T, event *v1alpha1.GitEventSpec, class fault.Class, reason string) {
	t.Helper()
	got, err := b.client.Complete(t.Context(), event)
	if f := fault.Of(err); got != nil || f == nil || f.Class != class || f.Reason != reason {
		t.Errorf("%+v, %v, want %s %s", got, err, class, reason)
	}
}

func (b bench) pushEvent(ref string) *v1alpha1.GitEventSpec {
	return b.decode(b.PushDelivery(forgelab.PushEvent{Project: testProject, Ref: ref}))
}

// A merge request is as GitLab says, whatever the body said.
func TestCompleteReadsMergeRequest(t *testing.T) {
	b, iid := forked(t, forgelab.Public, "")
	b.SetLabels(testProject, iid, "rita", "true")
	event := b.decode(b.MergeRequestDelivery(forgelab.MergeRequestEvent{Project: testProject, IID: iid}))
	want := event.DeepCopy()
	want.PullRequest.Author, want.Commit = "stranger", nil
	event.PullRequest.Labels, event.PullRequest.Title, event.BaseRef = []string{"forged"}, "forged", "release"
	event.PullRequest.Author, event.PullRequest.Draft, event.Commit = "rita", true, &v1alpha1.Commit{Title: "forged"}
	got := b.completes(t, event)
	want.Project.OwnerID = got.Project.OwnerID // which the body does not have
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	event.PullRequest.HeadProjectID = 0 // as if the fork were deleted
	got = b.completes(t, event)
	if got.PullRequest.HeadProjectID != want.PullRequest.HeadProjectID || got.HeadURL != want.HeadURL {
		t.Errorf("%+v", got)
	}
	event.PullRequest.HeadProjectID = b.project.ID // as if its author could push to the target
	b.wantFault(t, event, fault.Ignored, reasonForged)
}

// The pusher of an older head of a fork is not known: any user who can push there could run it in
// another user's name.
func TestCompleteAcceptsOnlyNewestHeadOfFork(t *testing.T) {
	b, iid := forked(t, forgelab.Public, "")
	event := b.decode(b.MergeRequestDelivery(forgelab.MergeRequestEvent{Project: testProject, IID: iid, Action: "open"}))
	b.completes(t, event)
	b.GitLab.Commit(testFork, "main", forgelab.Change{Author: "stranger", Files: map[string]string{"x": "newer"}})
	b.wantFault(t, event, fault.Ignored, "Superseded")
}

// An event from before a merge request was merged or closed starts nothing. Only GitLab itself says
// that it is closed, by whom and when, because the body may contain anything.
func TestCompleteOfClosedMergeRequest(t *testing.T) {
	for name, close := range map[string]func(b bench, iid int64){
		"merge": func(b bench, iid int64) { b.Merge(testProject, iid, "dev") },
		"close": func(b bench, iid int64) { b.CloseMergeRequest(testProject, iid, "dev") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, forgelab.Options{})
			b.Commit("topic", map[string]string{"x": "z"})
			event := b.PullRequest("topic", "dev")
			closing := event.DeepCopy()
			closing.Action, closing.Actor = name, "forged"
			future := metav1.NewTime(time.Now().Add(24 * time.Hour))
			closing.HappenedAt = &future
			b.wantFault(t, closing, fault.Transient, fault.ReasonNotConfirmed)
			close(b, event.PullRequest.Number)
			b.wantFault(t, event, fault.Ignored, "PullRequestClosed")
			got := b.completes(t, closing)
			if !got.Closes() || got.SHA != event.SHA || got.Actor != "" && got.Actor != "dev" ||
				!got.HappenedAt.Before(&future) {
				t.Errorf("%+v", got)
			}
			closing.PullRequest.AuthorID++
			b.wantFault(t, closing, fault.Ignored, reasonForged)
		})
	}
}

func TestCompleteReadsPush(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	event := b.pushEvent("refs/heads/main")
	want := *event.Commit
	event.Commit = &v1alpha1.Commit{Title: "forged", SkipCI: true}
	if got := b.completes(t, event); *got.Commit != want {
		t.Errorf("%+v, want %+v", got.Commit, want)
	}
	if n := b.Count(forgelab.RouteBranch); n != 1 || b.Count(forgelab.RouteEvents) != 0 {
		t.Errorf("%d reads of the branch, %d of the activity, want one and none", n, b.Count(forgelab.RouteEvents))
	}
}

// The activity confirms where a ref was: before a later push, before a forced one, and after it was
// deleted.
func TestCompleteOfPushToMovedRef(t *testing.T) {
	for name, change := range map[string]func(b bench, first string){
		"pushed to": func(b bench, _ string) { b.Commit("topic", map[string]string{"x": "later"}) },
		"set back":  func(b bench, first string) { b.SetBranch(testProject, "topic", first, "dev") },
		"deleted":   func(b bench, _ string) { b.DeleteBranch(testProject, "topic", "dev") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, forgelab.Options{})
			sha := b.Commit("topic", map[string]string{"x": "a"})
			event := b.pushEvent("refs/heads/topic")
			change(b, b.head.SHA)
			if got := b.completes(t, event); got.SHA != sha || got.Commit != nil {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A commit between two pushes was never pushed: an old commit must not return as if it were new.
func TestCompleteRefusesCommitThatWasNotPushed(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.Commit("topic", map[string]string{"x": "a"})
	sha := b.Commit("topic", map[string]string{"x": "b"})
	b.SetBranch(testProject, "main", sha, "dev")
	event := b.pushEvent("refs/heads/main")
	b.completes(t, event)
	event.SHA = b.Commit("other", map[string]string{"x": "c"})
	b.wantFault(t, event, fault.Transient, fault.ReasonNotConfirmed)
	b.CreateTag(testProject, "v1", sha, "dev")
	tag := b.pushEvent("refs/tags/v1")
	if got := b.completes(t, tag); got.Commit == nil || got.SHA != sha {
		t.Errorf("a tag: %+v", got)
	}
	tag.SHA = b.head.SHA
	b.wantFault(t, tag, fault.Transient, fault.ReasonNotConfirmed)
	b.DeleteTag(testProject, "v1", "dev")
	tag.SHA = sha
	b.completes(t, tag)
}

// In a busy project a limited number of pages of pushes before the event's receipt is searched. An
// event that has waited for long (the API server was down, for example) is found behind later
// pushes (I-1).
func TestCompleteLimitsSearchedPushes(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	event := b.pushEvent("refs/heads/main")
	const later = maxActivityPages*api.PerPage + 1
	event.ReceivedAt = metav1.NewTime(time.Now().Add(later * time.Second)) // each push has its own second
	for i := range later {
		b.SetBranch(testProject, fmt.Sprint("b", i), b.head.SHA, "dev")
	}
	b.Commit("main", map[string]string{"x": "later"})
	b.wantFault(t, event, fault.Transient, fault.ReasonNotConfirmed)
	if n := b.Count(forgelab.RouteEvents); n != maxActivityPages {
		t.Errorf("%d calls, want %d", n, maxActivityPages)
	}
	event.ReceivedAt = metav1.NewTime(time.Now().Add(-2 * clockSkew))
	b.completes(t, event)
}

// S12: a failed look-up is retried and confirms nothing.
func TestCompleteNeedsReadableActivity(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.Commit("topic", map[string]string{"x": "a"})
	request := b.PullRequest("topic", "dev")
	note := b.Comment(request, "ada", "/deploy")
	push := b.pushEvent("refs/heads/topic")
	b.CreateTag(testProject, "v1", b.head.SHA, "dev")
	tag := b.pushEvent("refs/tags/v1")
	b.Commit("topic", map[string]string{"x": "moved"})
	for route, event := range map[string]*v1alpha1.GitEventSpec{
		forgelab.RouteMergeRequest: request, forgelab.RouteMRVersions: request, forgelab.RouteNoteGet: note,
		forgelab.RouteBranch: push, forgelab.RouteEvents: push, forgelab.RouteTag: tag,
	} {
		for code, class := range map[int]fault.Class{500: fault.Transient, 502: fault.Transient, 401: fault.Operator,
			403: fault.Operator} {
			b.Inject(forgelab.Fault{Route: route, Count: 1, Do: forge.Answer(code, nil, `{"message":"x"}`)})
			if got, err := b.client.Complete(t.Context(), event); got != nil || !fault.Is(err, class) ||
				fault.Of(err).Reason == fault.ReasonNotConfirmed {
				t.Errorf("%s %d: %+v, %v, want class %s", route, code, got, err, class)
			}
		}
		for _, body := range []string{"{}", "null", "<html>"} {
			b.Inject(forgelab.Fault{Route: route, Count: 1, Do: forge.Answer(200, nil, body)})
			if got, err := b.client.Complete(t.Context(), event); got != nil || !fault.Is(err, fault.Transient) {
				t.Errorf("%s %q: %+v, %v, want a Transient fault", route, body, got, err)
			}
		}
	}
}

// The comment's author and text are GitLab's.
func TestCompleteReadsComment(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.Commit("topic", map[string]string{"x": "a"})
	event := b.Comment(b.PullRequest("topic", "dev"), "ada", "/deploy")
	event.Comment.Body = "" // the record does not hold it
	if got := b.completes(t, event); got.Comment.Body != "/deploy" || event.Comment.Body != "" {
		t.Errorf("%+v", got.Comment)
	}
	event.Sender = strings.ToUpper(event.Sender)
	b.completes(t, event)
	event.Sender = "dev"
	b.wantFault(t, event, fault.Ignored, reasonForged)
}

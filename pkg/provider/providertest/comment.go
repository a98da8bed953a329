// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// commented opens a pull request, and another user comments on it.
func commented(w Env) (opened, comment *v1alpha1.GitEventSpec) {
	w.Service.Commit("main", map[string]string{"x": "y"})
	w.Service.Commit("topic", map[string]string{"x": "z"})
	opened = w.Service.PullRequest("topic", "dev")
	return opened, w.Service.Comment(opened, "ada", "/deploy \"größe\"\nnow")
}

func testComment(t *testing.T, w Env) {
	opened, event := commented(w)
	if event.Comment == nil || event.Comment.ID <= 0 || event.Comment.Body != "/deploy \"größe\"\nnow" ||
		event.Sender != "ada" ||
		event.EventType != "on-comment" ||
		event.Trigger != v1alpha1.TriggerPullRequest ||
		event.SHA != "" {
		t.Errorf("decoded as %+v with %+v", event, event.Comment)
	}
	Storable(t, event)
	head := w.Service.Commit("topic", map[string]string{"x": "moved"})
	before := event.DeepCopy()
	client := connect(t, w)
	got, err := client.Complete(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	want := event.DeepCopy()
	want.SHA, want.BaseRef, want.HeadRef = head, opened.BaseRef, opened.HeadRef
	want.HeadURL, want.PullRequest = opened.HeadURL, opened.PullRequest
	want.Project.OwnerID = owned(t, got)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(before, event); d != "" {
		t.Errorf("the event itself was changed: %s", d)
	}
	w.Service.Withdraw(opened)
	_, err = client.Complete(t.Context(), event)
	if !fault.Is(err, fault.Ignored) || fault.Of(err).Reason != "PullRequestClosed" {
		t.Errorf("a pull request that was closed: %v, want an Ignored fault", err)
	}
}

// testCommentFaults: what is not known about a pull request is retried and never invented.
func testCommentFaults(t *testing.T, w Env) {
	_, event := commented(w)
	client := connect(t, w)
	for how, class := range map[Failure]fault.Class{
		Unavailable: fault.Transient, Garbage: fault.Transient, NotFound: fault.Transient, Forbidden: fault.Operator,
	} {
		w.Service.Fail(ReadPull, how, 1)
		if got, err := client.Complete(t.Context(), event); got != nil || !fault.Is(err, class) {
			t.Errorf("%s: %+v, %v, want a %s fault", how, got, err, class)
		}
	}
	w.Service.Fail(ReadPull, NotFound, 1)
	w.Service.Fail(ReadRepository, NotFound, 1)
	if _, err := client.Complete(t.Context(), event); !fault.Is(err, fault.Operator) {
		t.Errorf("a repository that is hidden as well: %v, want an Operator fault", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
)

const remarkCreated = "commit-comment-created.json"

func TestDecodeCommentOnCommit(t *testing.T) {
	want := event(func(s *v1alpha1.GitEventSpec) {
		s.Trigger, s.EventType, s.Action, s.Sender = "push", "on-comment", "created", "ada"
		s.Comment = &v1alpha1.Comment{ID: 880001, Body: "Flaky?\r\n/retest build branch:main\r\n"}
	})
	want.Headers["X-Github-Event"] = "commit_comment"
	got, err := webhook{}.Decode(headers("commit_comment"), recorded(t, remarkCreated))
	if err != nil {
		t.Fatal(err)
	}
	want.Body, want.HappenedAt = got.Body, got.Body.At.DeepCopy() // TestEventNameIgnoresDeliveryID
	if d := cmp.Diff(want, got); d != "" || !strings.HasPrefix(got.EventName(), "comment-") {
		t.Errorf("%s: %s", got.EventName(), d)
	}
}

// S16: only a new comment by a user counts.
func TestDecodeRefusesCommentsOnCommits(t *testing.T) {
	const ada = `"login": "ada"`
	for name, c := range map[string]struct {
		old, new string
		count    int
		class    fault.Class
		message  string
	}{
		"an edited comment": {
			`"created"`, `"edited"`, 1, fault.Ignored, `commit_comment action "edited"`,
		},
		"a bot":                                  {`"type": "User"`, `"type": "Bot"`, -1, fault.Ignored, "a bot"},
		"a comment of our own, whoever wrote it": {`Flaky?`, `<!-- plumbline answer -->`, 1, fault.Ignored, "a bot"},
		"another user sent it":                   {ada, `"login": "eve"`, 1, fault.Ignored, "another user"},
		"no comment":                             {`"comment"`, `"comment_"`, 1, fault.Invalid, "comment.id"},
		"no author":                              {ada, `"login": ""`, 1, fault.Invalid, "comment.user.login"},
		"no sender":                              {`"sender"`, `"sender_"`, 1, fault.Invalid, "sender"},
		"no commit":                              {`"commit_id"`, `"commit_id_"`, 1, fault.Invalid, "comment.commit_id"},
		"a commit that is none": {
			`"commit_id": "6113`, `"commit_id": "main`, 1, fault.Invalid, "comment.commit_id",
		},
		"a comment that is an issue's, with no user": {`"user": {`, `"user_": {`, 1, fault.Invalid, "comment.user"},
	} {
		t.Run(name, func(t *testing.T) {
			body := recorded(t, remarkCreated)
			if !bytes.Contains(body, []byte(c.old)) {
				t.Fatalf("the payload has no %s", c.old)
			}
			_, err := webhook{}.Decode(headers("commit_comment"), bytes.Replace(body, []byte(c.old), []byte(c.new), c.count))
			if !fault.Is(err, c.class) || !strings.Contains(fault.Of(err).Message, c.message) {
				t.Errorf("got %v, want %s with %q", err, c.class, c.message)
			}
		})
	}
}

// remarked comments on a commit and decodes it.
func (b *bench) remarked(sha, body string) *v1alpha1.GitEventSpec {
	return b.decode(b.CommitCommentDelivery(forge.CommentEvent{
		Repo: testRepo, ID: b.CommitComment(testRepo, sha, "ada", body),
	}))
}

// GitHub says where a branch or tag is now, and which the default branch is.
func TestCompleteCommentOnCommit(t *testing.T) {
	b := newBench(t)
	old := b.Commit("main", map[string]string{"x": "old"})
	slashed := b.Commit("feature/ü#1", map[string]string{"x": "a"})
	b.CreateTag(testRepo, "v1", old, "ada")
	b.CreateTag(testRepo, "v2", old, "ada")
	if b.Annotate(testRepo, "v2") == old {
		t.Fatal("an annotated tag has an object of its own")
	}
	event := b.remarked(old, "/test")
	head := b.Commit("main", map[string]string{"x": "new"})
	for ref, want := range map[string][2]string{
		"": {"refs/heads/main", head}, "refs/heads/main": {"refs/heads/main", head},
		"refs/heads/feature/ü#1": {"refs/heads/feature/ü#1", slashed},
		"refs/tags/v1":           {"refs/tags/v1", old}, "refs/tags/v2": {"refs/tags/v2", old},
	} {
		event.BaseRef = ref
		got, err := b.client.Complete(t.Context(), event)
		if err != nil {
			t.Fatal(ref, err)
		}
		expected := event.DeepCopy()
		expected.BaseRef, expected.HeadRef, expected.SHA, expected.Commit = want[0], want[0], want[1], got.Commit
		if d := cmp.Diff(expected, got); d != "" || got.Commit.Title != "a change" {
			t.Errorf("%q: %+v %s", ref, got.Commit, d)
		}
	}
	for _, ref := range []string{"refs/heads/gone", "refs/tags/main", "refs/heads/v1"} {
		event.BaseRef = ref
		if got, err := b.client.Complete(t.Context(), event); got != nil || !fault.Is(err, fault.Ignored) ||
			!strings.Contains(err.Error(), "acme/app has no "+ref) {
			t.Errorf("%s: %+v, %v, want an Ignored fault", ref, got, err)
		}
	}
}

// What is not known is retried: a missing branch is never assumed, nor a commit that GitHub has not
// named (S12).
func TestCompleteWaitsForBranchOfCommit(t *testing.T) {
	b := newBench(t)
	event := b.remarked(b.Commit("main", map[string]string{"x": "y"}), "/test")
	named := event.DeepCopy()
	named.BaseRef = "refs/heads/main"
	for route, event := range map[string]*v1alpha1.GitEventSpec{forge.RouteRepo: event, forge.RouteCommit: named} {
		for name, do := range wrong() {
			b.Inject(forge.Fault{Route: route, Count: 1, Do: do})
			if got, err := b.client.Complete(t.Context(), event); got != nil || !fault.Is(err, fault.Transient) {
				t.Errorf("%s: %s: %+v, %v, want a wait", route, name, got, err)
			}
		}
	}
	b.Inject(forge.Fault{
		Route: forge.RouteCommit, Count: 1, Do: forge.Answer(http.StatusNotFound, nil, `{"message":"Not Found"}`),
	})
	b.Inject(forge.Fault{
		Route: forge.RouteRepo, Count: 1, Do: forge.Answer(http.StatusNotFound, nil, `{"message":"Not Found"}`),
	})
	if got, err := b.client.Complete(t.Context(), named); got != nil || !fault.Is(err, fault.Operator) {
		t.Errorf("a repository that is hidden: %+v, %v, want an Operator fault", got, err)
	}
}

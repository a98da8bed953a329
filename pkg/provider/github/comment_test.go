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

const commentCreated = "comment-created.json"

func TestDecodeComment(t *testing.T) {
	want := event(func(s *v1alpha1.GitEventSpec) {
		s.Trigger, s.EventType, s.Action, s.Sender, s.SHA, s.HeadURL = "pull_request", "on-comment", "created", "ada", "", ""
		s.PullRequest = &v1alpha1.PullRequest{
			Number: 12, Title: "Pump faster", Author: "dev", Labels: []string{"kind/bug", "größe: S"},
		}
		s.Comment = &v1alpha1.Comment{ID: 990001, Body: "Looks good.\r\n/deploy staging \"größe\"\r\n"}
	})
	want.Headers["X-Github-Event"] = "issue_comment"
	got, err := webhook{}.Decode(headers("issue_comment"), recorded(t, commentCreated))
	if err != nil {
		t.Fatal(err)
	}
	want.Body, want.HappenedAt = got.Body, got.Body.At.DeepCopy() // TestEventNameIgnoresDeliveryID
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestDecodeCommentKeepsWholeText(t *testing.T) {
	long := strings.Repeat("世", 65536)
	body := bytes.Replace(recorded(t, commentCreated), []byte("Looks good."), []byte(long), 1)
	got, err := webhook{}.Decode(headers("issue_comment"), body)
	if err != nil || !strings.HasPrefix(got.Comment.Body, long) || !strings.HasSuffix(got.Comment.Body, "\r\n") {
		t.Errorf("%v, want the whole comment", err)
	}
}

func TestDecodeRefusesComments(t *testing.T) {
	const ada = `"login": "ada"`
	cases := []struct {
		name, old, new string
		count          int
		class          fault.Class
		message        string
	}{
		{"an edited comment", `"created"`, `"edited"`, 1, fault.Ignored, `action "edited"`},
		{"a deleted comment", `"created"`, `"deleted"`, 1, fault.Ignored, `action "deleted"`},
		{"a comment on an issue", `"pull_request"`, `"pull_request_"`, 1, fault.Ignored, "a comment on an issue"},
		{"a closed pull request", `"state": "open"`, `"state": "closed"`, 1, fault.Ignored, "not open"},
		{"a state that is not known", `"state": "open"`, `"state_": "open"`, 1, fault.Ignored, "not open"},
		{"a bot", `"type": "User"`, `"type": "Bot"`, -1, fault.Ignored, "a bot"},
		{"a bot by its login", ada, `"login": "renovate[bot]"`, -1, fault.Ignored, "a bot"},
		{"another user sent it", ada, `"login": "eve"`, 1, fault.Ignored, "another user"},
		{"a comment of our own, whoever wrote it", `/deploy staging`, `<!-- plumbline answer --> /test`, 1, fault.Ignored,
			"a bot"},
		{"no issue", `"issue"`, `"issue_"`, 1, fault.Invalid, "issue.number"},
		{"no comment", `"comment"`, `"comment_"`, 1, fault.Invalid, "comment.id"},
		{"no author of the comment", ada, `"login": ""`, 1, fault.Invalid, "comment.user.login"},
		{"no author of the pull request", `"login": "dev"`, `"login": ""`, 1, fault.Invalid, "issue.user.login"},
		{"no sender", `"sender"`, `"sender_"`, 1, fault.Invalid, "sender"},
		{"a body that is a list", `"body": "Looks`, `"body": [], "x": "`, 1, fault.Invalid,
			"not what the Git service documents"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := recorded(t, commentCreated)
			if !bytes.Contains(body, []byte(c.old)) {
				t.Fatalf("the payload has no %s", c.old)
			}
			body = bytes.Replace(body, []byte(c.old), []byte(c.new), c.count)
			_, err := webhook{}.Decode(headers("issue_comment"), body)
			if !fault.Is(err, c.class) || !strings.Contains(fault.Of(err).Message, c.message) {
				t.Errorf("got %v, want %s with %q", err, c.class, c.message)
			}
		})
	}
}

// comment opens a pull request of a fork and decodes a comment on it.
func (b *bench) comment(t *testing.T) *v1alpha1.GitEventSpec {
	t.Helper()
	b.Commit("main", map[string]string{"x": "y"})
	b.AddUser("dev")
	b.CreateRepo("dev", "app", forge.RepoOptions{ForkOf: testRepo})
	b.GitHub.Commit("dev/app", "topic", forge.Change{Message: "change", Files: map[string]string{"x": "z"}})
	number := b.OpenPullRequest(forge.NewPull{
		Base: testRepo, Head: "dev/app", HeadBranch: "topic", Author: "dev", Title: "a change", Draft: true,
	})
	id := b.GitHub.Comment(testRepo, number, "ada", "/deploy")
	return b.decode(b.CommentDelivery(forge.CommentEvent{Repo: testRepo, ID: id}))
}

func TestCompleteCommentOnFork(t *testing.T) {
	b := newBench(t)
	event := b.comment(t)
	head := b.GitHub.Commit("dev/app", "topic",
		forge.Change{Message: "the head moved", Files: map[string]string{"x": "moved"}})
	got, err := b.client.Complete(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	opened := b.decode(b.PullRequestDelivery(forge.PullEvent{
		Repo: testRepo, Number: int(event.PullRequest.Number), Action: "opened",
	}))
	want := event.DeepCopy()
	want.SHA, want.BaseRef, want.HeadRef, want.HeadURL, want.PullRequest.HeadProjectID = head, "main", "topic",
		opened.HeadURL, opened.PullRequest.HeadProjectID
	want.PullRequest.Draft = true
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestCompleteNeedsWholePullRequest(t *testing.T) {
	b := newBench(t)
	event := b.comment(t)
	for name, body := range map[string]string{"an empty answer": "{}",
		"another pull request": `{"number":99,"state":"open"}`} {
		b.Inject(forge.Fault{Route: forge.RoutePull, Count: 1, Do: forge.Answer(http.StatusOK, nil, body)})
		if got, err := b.client.Complete(t.Context(), event); got != nil || !fault.Is(err, fault.Transient) {
			t.Errorf("%s: %+v, %v, want a Transient fault", name, got, err)
		}
	}
}

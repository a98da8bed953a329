// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCommentDelivery(t *testing.T) {
	w := newFixture(t, Options{})
	w.Commit("org/app", "topic", Change{Files: map[string]string{"a": "1"}})
	n := w.OpenPullRequest(NewPull{Base: "org/app", HeadBranch: "topic", Author: "dev"})
	w.LabelPull("org/app", n, "bug")
	d := w.CommentDelivery(CommentEvent{Repo: "org/app", ID: w.Comment("org/app", n, "bob", "hi\r\nthere")})
	if d.Event != "issue_comment" || d.Action != "created" || d.Repo != "org/app" {
		t.Errorf("%s %s of %s", d.Event, d.Action, d.Repo)
	}
	var e struct {
		Issue struct {
			Number, Comments int64
			State            string
			User             struct{ Login string }
			Labels           []struct{ Name string }
			Pull             *struct{ URL string } `json:"pull_request"`
		}
		Comment struct {
			ID   int64
			Body string
			User struct{ Login, Type string }
		}
		Sender struct{ Login string }
	}
	must(t, json.Unmarshal(d.Body, &e))
	if e.Issue.Number != int64(n) || e.Issue.User.Login != "dev" || e.Issue.Pull == nil {
		t.Errorf("the issue is %+v, want pull request %d by dev", e.Issue, n)
	}
	if e.Issue.Comments != 1 || e.Issue.State != "open" || len(e.Issue.Labels) != 1 {
		t.Errorf("the issue is %+v, want an open one with one comment and one label", e.Issue)
	}
	if e.Comment.ID == 0 || e.Comment.Body != "hi\r\nthere" {
		t.Errorf("the comment is %+v", e.Comment)
	}
	if user := e.Comment.User; user.Login != "bob" || user.Type != "User" || e.Sender.Login != "bob" {
		t.Errorf("the comment is by %+v, sent by %s, want bob", user, e.Sender.Login)
	}
	if strings.Contains(string(d.Body), w.Branches("org/app")["topic"]) {
		t.Error("a comment's payload names no commit of its pull request")
	}
}

// Each event and comment of a repository has a later second than the one before, however fast they
// come.
func TestEventsHaveDistinctSeconds(t *testing.T) {
	w := newFixture(t, Options{})
	sha := w.Commit("org/app", "topic", Change{Files: map[string]string{"a": "1"}})
	n := w.OpenPullRequest(NewPull{Base: "org/app", HeadBranch: "topic", Author: "dev"})
	last := ""
	for i, d := range []Delivery{
		w.PullRequestDelivery(PullEvent{Repo: "org/app", Number: n, Action: "opened"}),
		w.CommentDelivery(CommentEvent{Repo: "org/app", ID: w.Comment("org/app", n, "bob", "hi")}),
		w.CommitCommentDelivery(CommentEvent{Repo: "org/app", ID: w.CommitComment("org/app", sha, "bob", "hi")}),
		w.PullRequestDelivery(PullEvent{Repo: "org/app", Number: n, Action: "edited"}),
	} {
		var e struct {
			Pull struct {
				Updated string `json:"updated_at"`
			} `json:"pull_request"`
			Comment struct {
				Created string `json:"created_at"`
			}
		}
		err := json.Unmarshal(d.Body, &e)
		at := e.Pull.Updated + e.Comment.Created
		if err != nil || at <= last {
			t.Errorf("delivery %d is of %s (%v), the one before of %s", i, at, err, last)
		}
		last = at
	}
}

// An App writes and edits its own comments, and is refused what GitHub refuses.
func TestCommentsOfApps(t *testing.T) {
	w := newFixture(t, Options{})
	w.Commit("org/app", "topic", Change{Files: map[string]string{"a": "1"}})
	n := w.OpenPullRequest(NewPull{Base: "org/app", HeadBranch: "topic", Author: "dev"})
	theirs, token := w.Comment("org/app", n, "bob", "hi"), w.token(w.inst, nil)
	const at = "/repos/org/app/issues/"
	for _, c := range []struct {
		name, method, path string
		body               any
		want               int
	}{
		{"a comment", "POST", at + "1/comments", object{"body": "one"}, 201},
		{"a blank one", "POST", at + "1/comments", object{"body": " "}, 422},
		{"one without a body", "POST", at + "1/comments", object{}, 422},
		{"one that is too long", "POST", at + "1/comments", object{"body": strings.Repeat("é", maxComment+1)}, 422},
		{"the longest", "POST", at + "1/comments", object{"body": strings.Repeat("é", maxComment)}, 201},
		{"an unknown pull request", "POST", at + "9/comments", object{"body": "x"}, 404},
		{"an edit", "PATCH", "", object{"body": "two"}, 200},
		{"an edit that is too long", "PATCH", "", object{"body": strings.Repeat("é", maxComment+1)}, 422},
		{"somebody else's", "PATCH", at + "comments/" + itoa(theirs), object{"body": "x"}, 403},
		{"an unknown one", "PATCH", at + "comments/7", object{"body": "x"}, 404},
	} {
		if c.path == "" {
			c.path = at + "comments/" + itoa(w.Comments("org/app", n)[1].ID)
		}
		if r := w.do(c.method, c.path, token, c.body); r.Status != c.want {
			t.Errorf("%s: %d %s, want %d", c.name, r.Status, r.Body, c.want)
		}
	}
	if log := w.Writes(); len(log) != 10 || !log[0].Applied || log[0].Route != RouteCommentCreate || log[1].Applied {
		t.Errorf("write log: %.500v", log)
	}
	list := w.do("GET", at+"1/comments", token, nil).List(t)
	if len(list) != 3 || text(list[1]["user"].(map[string]any), "login") != "plumbline[bot]" {
		t.Errorf("comments over the API: %.500v", list)
	}
	w.LockPull("org/app", n, true)
	if r := w.do("POST", at+"1/comments", token, object{"body": "x"}); r.Status != 403 ||
		!strings.Contains(string(r.Body), "issue is locked") {
		t.Errorf("in a locked conversation: %d %s", r.Status, r.Body)
	}
	if all := w.Comments("org/app", n); len(all) != 3 || all[1].Body != "two" || all[1].Edits != 1 ||
		all[0].Author != "bob" {
		t.Errorf("comments %.200v", all)
	}
}

// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCommentDelivery(t *testing.T) {
	w := newWorld(t, Options{})
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
	if err := json.Unmarshal(d.Body, &e); err != nil {
		t.Fatal(err)
	}
	if e.Issue.Number != int64(n) || e.Issue.Comments != 1 || e.Issue.State != "open" || e.Issue.User.Login != "dev" || len(e.Issue.Labels) != 1 || e.Issue.Pull == nil {
		t.Errorf("the issue is %+v", e.Issue)
	}
	if e.Comment.ID == 0 || e.Comment.Body != "hi\r\nthere" || e.Comment.User.Login != "bob" || e.Comment.User.Type != "User" || e.Sender.Login != "bob" {
		t.Errorf("the comment is %+v by %s", e.Comment, e.Sender.Login)
	}
	if strings.Contains(string(d.Body), w.Branches("org/app")["topic"]) {
		t.Error("a comment's payload names no commit of its pull request")
	}
}

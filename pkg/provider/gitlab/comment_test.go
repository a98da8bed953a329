// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

func TestDecodeRefusesComments(t *testing.T) {
	const create, dev = `"action": "create"`, `"username": "dev"`
	ours := strings.TrimSuffix(marksOf("", status.Check{}).String(), ">")
	cases := []struct {
		name, old, new string
		class          fault.Class
		message        string
	}{
		{"an edited comment", create, `"action": "update"`, fault.Ignored, `action "update"`},
		{"a comment on an issue", `"MergeRequest"`, `"Issue"`, fault.Ignored, "this kind of object"},
		{"a merge request that is closed", `"state": "opened"`, `"state": "closed"`, fault.Ignored, "not open"},
		{"a merge request that is being merged", `"state": "opened"`, `"state": "locked"`, fault.Ignored, "not open"},
		{"a state that is not known", `"state": "opened"`, `"state_": "opened"`, fault.Ignored, "not open"},
		{"the bot of a project's token", dev, `"username": "project_1001_bot_4ffca233d8298ea1"`, fault.Ignored, "a bot"},
		{"the bot of an old project's token", dev, `"username": "project_1001_bot2"`, fault.Ignored, "a bot"},
		{"the bot of a group's token", dev, `"username": "group_7_bot"`, fault.Ignored, "a bot"},
		{"a service account", dev, `"username": "service_account_group_7_ab"`, fault.Ignored, "a bot"},
		{"a note of our own, in the name of the token's user", `"note": "Looks`, `"note": "` + ours + `> Looks`,
			fault.Ignored, "a bot"},
		{"more than GitHub would take", `"note": "Looks`, `"note": "` + strings.Repeat("ö", 65536) + `Looks`, fault.Ignored,
			"more than 65536 characters"},
		{"what GitLab itself notes", `"system": false`, `"system": true`, fault.Ignored, "a bot"},
		{"another user sent it", `"author_id": 51,
  "change_position"`, `"author_id": 6, "change_position"`, fault.Ignored, "another user"},
		{"a mark of our own further down", `/deploy staging`, `<!-- plumbline answer -->`, fault.Ignored, "a bot"},
		{"no merge request", `"merge_request": {`, `"merge_request_": {`, fault.Invalid, "merge_request"},
		{"no number", `"iid": 12`, `"iid": 0`, fault.Invalid, "merge_request.iid"},
		{"another project's", `"target_project_id": 1001`, `"target_project_id": 7`, fault.Invalid,
			"merge_request.target_project_id"},
		{"no text", `"note": "Looks`, `"note_": "Looks`, fault.Invalid, "object_attributes.note"},
		{"no branch", `"target_branch": "main"`, `"target_branch": ""`, fault.Invalid, "merge_request.target_branch"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := recorded(t, "note-merge-request")
			if !bytes.Contains(body, []byte(c.old)) {
				t.Fatalf("the payload has no %s", c.old)
			}
			got, err := webhook{}.Decode(headers(eventNote), bytes.Replace(body, []byte(c.old), []byte(c.new), 1))
			if !fault.Is(err, c.class) || !strings.Contains(fault.Of(err).Message, c.message) {
				t.Errorf("%+v, %v, want %s with %q", got, err, c.class, c.message)
			}
		})
	}
}

// Users may have names similar to a bot's, and versions before 16.11 send no action.
func TestDecodeAcceptsUserComments(t *testing.T) {
	for old, renamed := range map[string]string{
		`"username": "dev"`: `"username": "project_manager_bot"`, `"action": "create"`: `"x": "y"`,
		`"note": "Looks`: `"note": "<!-- plumbline --> Looks`,
	} {
		body := bytes.Replace(recorded(t, "note-merge-request"), []byte(old), []byte(renamed), 1)
		if spec, err := (webhook{}).Decode(headers(eventNote), body); err != nil || spec.Comment == nil {
			t.Errorf("%s: %+v, %v, want an event", renamed, spec, err)
		}
	}
	if _, err := (webhook{}).Decode(headers("Confidential Note Hook"), recorded(t, "note-merge-request")); !fault.Is(err,
		fault.Ignored) {
		t.Errorf("an internal note: %v, want an Ignored fault", err)
	}
}

// The author's access is read by the current username, not by the id in the payload.
func TestCompleteCommentOnFork(t *testing.T) {
	b, iid := forked(t, forgelab.Public, "")
	comment := b.decode(b.NoteDelivery(b.AddNote(testProject, iid, "rita", "/deploy")))
	if !strings.HasPrefix(comment.PullRequest.Author, delivery.IDPrefix) || comment.Sender != "rita" {
		t.Errorf("decoded as by %s, of %s", comment.Sender, comment.PullRequest.Author)
	}
	got, err := b.client.Complete(t.Context(), comment)
	if err != nil || got.PullRequest.Author != "stranger" ||
		got.PullRequest.HeadProjectID != b.head.PullRequest.HeadProjectID ||
		!strings.HasSuffix(got.HeadURL, "/"+testFork) || got.SHA != b.head.SHA {
		t.Errorf("%+v, %v", got, err)
	}
	b.Inject(forgelab.Fault{Route: forgelab.RouteMergeRequest,
		Do: forge.Answer(http.StatusOK, nil, `{"iid":1,"state":"opened","target_project_id":`+fmt.Sprint(b.project.ID)+
			`,"source_project_id":null,"source_branch":"main","target_branch":"main","sha":"`+b.head.SHA+`","author":{"id":`+
			fmt.Sprint(comment.PullRequest.AuthorID)+`,"username":"stranger"}}`)})
	if got, err = b.client.Complete(t.Context(), comment); err != nil || got.PullRequest.HeadProjectID != 0 ||
		got.HeadURL != "" {
		t.Errorf("of a fork that was deleted: %+v, %v", got, err)
	}
}

func TestCompleteNeedsWholeMergeRequest(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.Commit("topic", map[string]string{"x": "z"})
	event := b.Comment(b.PullRequest("topic", "dev"), "ada", "/deploy")
	whole := `"iid":1,"target_project_id":` + fmt.Sprint(b.project.ID) +
		`,"source_branch":"topic","target_branch":"main","sha":"` + shaHead + `","author":{"id":` +
		fmt.Sprint(event.PullRequest.AuthorID) + `,"username":"dev"}`
	for _, body := range []string{
		"{}", `{"iid":1}`, `{` + whole + `}`, `{"state":"opened",` + strings.Replace(whole, `"iid":1`, `"iid":2`, 1) + `}`,
		`{"state":"opened",` + strings.Replace(whole, shaHead, "main", 1) + `}`,
		`{"state":"opened",` + strings.Replace(whole, `"dev"`, `""`, 1) + `}`,
		`{"state":"opened",` + strings.Replace(whole, `"author":{"id"`, `"author":{"no":0,"x"`, 1) + `}`,
		`{"state":"opened",` + strings.Replace(whole, `"topic"`, `""`, 1) + `}`,
		`{"state":"opened",` + strings.Replace(whole, fmt.Sprint(b.project.ID), "7", 1) + `}`,
	} {
		b.Inject(forgelab.Fault{Route: forgelab.RouteMergeRequest, Count: 1, Do: forge.Answer(http.StatusOK, nil, body)})
		if got, err := b.client.Complete(t.Context(), event); got != nil || !fault.Is(err, fault.Transient) {
			t.Errorf("%s: %+v, %v, want a Transient fault", body, got, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/providertest"
)

const (
	shaBefore = "1481a2de7b2a7d02428ad93446ab166be7793fbb"
	shaHead   = "6113728f27ae82c7b1a177c8d03f9e96e0adf246"
	testKey   = "f5e5f430-f57b-4e6e-9fac-d9128cd7232f"
)

func headers(event string, more ...string) http.Header {
	h := http.Header{}
	h.Set("X-Gitlab-Event", event)
	h.Set("Idempotency-Key", testKey)
	h.Set("X-Gitlab-Instance", "https://gitlab.example.com")
	h.Set("X-Gitlab-Token", testSecret)
	h.Set("Content-Type", "application/json")
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	return h
}

func recorded(t *testing.T, file string) []byte {
	t.Helper()
	body, err := os.ReadFile("testdata/" + file + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// event is what all payloads in testdata share, changed.
func event(name string, change func(*v1alpha1.GitEventSpec)) *v1alpha1.GitEventSpec {
	spec := &v1alpha1.GitEventSpec{
		Provider: "gitlab", Host: "gitlab.example.com", DeliveryKey: testKey,
		Project: v1alpha1.Project{
			Owner: "acme/team", Name: "app", ID: 1001, URL: "https://gitlab.example.com/acme/team/app", DefaultBranch: "main",
		},
		SHA: shaHead, HeadURL: "https://gitlab.example.com/acme/team/app",
		Commit: &v1alpha1.Commit{Title: "Fix the pump", URL: "https://gitlab.example.com/acme/team/app/-/commit/" + shaHead},
		Headers: map[string]string{
			"X-Gitlab-Event": name, "Idempotency-Key": testKey, "X-Gitlab-Instance": "https://gitlab.example.com",
			"Content-Type": "application/json",
		},
	}
	change(spec)
	return spec
}

func pushed(name, eventType, ref, before string, described bool) *v1alpha1.GitEventSpec {
	return event(name, func(s *v1alpha1.GitEventSpec) {
		s.Trigger, s.EventType, s.BaseRef, s.HeadRef, s.Before, s.Sender = "push", eventType, ref, ref, before, "ada"
		if !described {
			s.Commit = nil
		}
	})
}

func merging(eventType, action string, head int64, change func(*v1alpha1.GitEventSpec)) *v1alpha1.GitEventSpec {
	return event(eventMergeRequest, func(s *v1alpha1.GitEventSpec) {
		s.Trigger, s.EventType, s.Action, s.BaseRef, s.HeadRef, s.Sender = "pull_request", eventType, action, "main", "topic",
			"dev"
		s.Actor = "dev"
		s.PullRequest = &v1alpha1.PullRequest{
			Number: 12, Title: "Pump faster", Author: "dev", AuthorID: 51, HeadProjectID: head,
			Labels: []string{"kind/bug", "größe: S"},
		}
		if head == 2002 {
			s.HeadURL, s.Commit.URL = "https://gitlab.example.com/stranger/app",
				"https://gitlab.example.com/stranger/app/-/commit/"+shaHead
		}
		change(s)
	})
}

// commenting has no commit, which is read later.
func commenting() *v1alpha1.GitEventSpec {
	spec := merging("on-comment", "create", 2002,
		func(s *v1alpha1.GitEventSpec) { s.SHA, s.Commit, s.Actor = "", nil, "" })
	spec.Headers["X-Gitlab-Event"] = eventNote
	spec.Comment = &v1alpha1.Comment{ID: 1244, Body: "Looks good.\n/deploy staging \"größe\""}
	return spec
}

func unchanged(*v1alpha1.GitEventSpec) {}

// byRita is an event that another user than the author caused.
func byRita(s *v1alpha1.GitEventSpec) {
	s.Sender, s.Actor, s.PullRequest.Author = "rita", "rita", "id:51"
}

// recordings are deliveries with all the fields GitLab sends.
func recordings(t *testing.T) []providertest.Recorded {
	cases := []struct {
		name, event, file string
		want              *v1alpha1.GitEventSpec
		ignored           string
	}{
		{"a push to a branch", eventPush, "push-branch", pushed(eventPush, "push", "refs/heads/main", shaBefore, true), ""},
		{"a new branch without new commits", eventPush, "push-new-branch",
			pushed(eventPush, "push", "refs/heads/feature/ü", "", false), ""},
		{"a branch that was set back brings no commits and runs", eventPush, "push-set-back",
			pushed(eventPush, "push", "refs/heads/main", shaBefore, false), ""},
		{"a deleted branch", eventPush, "push-deleted", nil, "refs/heads/old was deleted"},
		{"an annotated tag runs on the commit, not on the tag object that after names", eventTag, "tag-annotated",
			pushed(eventTag, "Tag Push", "refs/tags/v1.1", "", true), ""},
		{"a lightweight tag", eventTag, "tag-lightweight", pushed(eventTag, "Tag Push", "refs/tags/v1.0", "", false), ""},
		{"a deleted tag", eventTag, "tag-deleted", nil, "refs/tags/v1.0 was deleted"},
		{"a merge request from a fork", eventMergeRequest, "mr-open-fork", merging("Merge Request", "open", 2002, unchanged),
			""},
		{"new commits, with labels in the changes that nobody set", eventMergeRequest, "mr-update-push",
			merging("Merge Request", "update", 1001, func(s *v1alpha1.GitEventSpec) { s.Before = shaBefore }), ""},
		{"reopened by somebody else is still its author's", eventMergeRequest, "mr-reopen",
			merging("Merge Request", "reopen", 1001, byRita), ""},
		{"a label that somebody else adds is an event of its own type, for the author", eventMergeRequest, "mr-labels",
			merging("pull_request_labeled", "update", 2002, byRita), ""},
		{"a label that is removed", eventMergeRequest, "mr-label-removed", nil, "without new commits or labels"},
		{"a label and another title in one update", eventMergeRequest, "mr-title-and-label",
			merging("pull_request_labeled", "update", 2002, unchanged), ""},
		{"a draft that is ready", eventMergeRequest, "mr-ready", merging("Merge Request", "update", 2002, unchanged), ""},
		{"a draft runs", eventMergeRequest, "mr-draft",
			merging("Merge Request", "open", 1001, func(s *v1alpha1.GitEventSpec) {
				s.PullRequest.Draft, s.PullRequest.Title = true, "Draft: Pump faster"
			}), ""},
		{"closed", eventMergeRequest, "mr-close", merging("Merge Request", "close", 2002, unchanged), ""},
		{"merged", eventMergeRequest, "mr-merge", merging("Merge Request", "merge", 2002, unchanged), ""},
		{"approved", eventMergeRequest, "mr-approved", nil, `action "approved" starts nothing`},
		{"a merge request whose fork was deleted", eventMergeRequest, "mr-deleted-fork",
			merging("Merge Request", "reopen", 0, func(s *v1alpha1.GitEventSpec) { s.HeadURL = "" }), ""},
		{"a merge request without commits", eventMergeRequest, "mr-no-commits", nil, "has no commits"},
		{"a comment on a merge request", eventNote, "note-merge-request", commenting(), ""},
		{"a comment on a commit", eventNote, "note-commit", remarking(), ""},
		{"an event that is not asked for", "Pipeline Hook", "push-branch", nil, `event "Pipeline Hook" starts nothing`},
	}
	var out []providertest.Recorded
	for _, c := range cases {
		out = append(out, providertest.Recorded{
			Name: c.name, Delivery: providertest.Delivery{Header: headers(c.event), Body: recorded(t, c.file)}, Want: c.want,
			Ignored: c.ignored,
		})
	}
	return out
}

func TestDecodeRefuses(t *testing.T) {
	cases := []struct {
		name, event, file, old, new string
		message                     string
	}{
		{"another kind than the header says", eventPush, "tag-lightweight", "", "", "object_kind"},
		{"a comment in a merge request's place", eventMergeRequest, "note-commit", "", "", "object_kind"},
		{"no project", eventPush, "push-branch", `"project":`, `"project_":`, "project"},
		{"a project without an id", eventPush, "push-branch", `"project": {` + "\n" + `  "id": 1001`, `"project": {"id": 0`,
			"project.id"},
		{"another project's id", eventPush, "push-branch", `"project_id": 1001`, `"project_id": 7`, "project_id"},
		{"a path that is none", eventPush, "push-branch", `"path_with_namespace": "acme/team/app"`,
			`"path_with_namespace": "acme/../app"`, "path_with_namespace"},
		{"a path without a group", eventPush, "push-branch", `"path_with_namespace": "acme/team/app"`,
			`"path_with_namespace": "app"`, "path_with_namespace"},
		{"a page of another project", eventPush, "push-branch", `"web_url": "https://gitlab.example.com/acme/team/app"`,
			`"web_url": "https://gitlab.example.com/acme/x"`, "web_url"},
		{"a page with a password", eventPush, "push-branch", `"web_url": "https://gitlab`, `"web_url": "https://a:b@gitlab`,
			"web_url"},
		{"a page that is no web address", eventPush, "push-branch", `"web_url": "https:`, `"web_url": "ssh:`, "web_url"},
		{"two projects", eventPush, "push-branch", `"ref"`, `"Project": {"web_url": "https://x"}, "ref"`, "project twice"},
		{"no ref", eventPush, "push-branch", `"ref":`, `"ref_":`, "ref"},
		{"a ref that is too long", eventPush, "push-branch", "refs/heads/main", "refs/heads/" + strings.Repeat("x", 1024),
			"ref"},
		{"nobody pushed", eventPush, "push-branch", `"user_username": "ada"`, `"user_username": null`, "user_username"},
		{"after is no commit id", eventPush, "push-branch", `"after": "6113728f`, `"after": "../../xx`, "after"},
		{"before is no commit id", eventPush, "push-branch", `"before": "1481a2de`, `"before": "../../xx`, "before"},
		{"no attributes", eventMergeRequest, "mr-open-fork", `"object_attributes"`, `"object_attributes_"`,
			"object_attributes"},
		{"no number", eventMergeRequest, "mr-open-fork", `"iid": 12`, `"iid": 0`, "iid"},
		{"no author", eventMergeRequest, "mr-open-fork", `"author_id": 51`, `"author_id": null`, "author_id"},
		{"the target is another project", eventMergeRequest, "mr-open-fork", `"target_project_id": 1001`,
			`"target_project_id": 1`, "target_project_id"},
		{"a source without an id", eventMergeRequest, "mr-open-fork", `"source_project_id": 2002`, `"source_project_id": 0`,
			"source_project_id"},
		{"no head commit", eventMergeRequest, "mr-open-fork", `"id": "6113728f`, `"id": "zz`, "last_commit.id"},
		{"no user", eventMergeRequest, "mr-open-fork", `"user":`, `"user_":`, "user"},
		{"no source branch", eventMergeRequest, "mr-open-fork", `"source_branch": "topic"`, `"source_branch": ""`,
			"source_branch"},
		{"a draft that is none", eventMergeRequest, "mr-ready", `"draft": {`, `"draft": {"current": 1, "x": {}, `,
			"changes.draft"},
		{"a title that is none", eventMergeRequest, "mr-title-and-label", `"title": {`, `"title": {"current": 1, "x": {}, `,
			"changes.title"},
		{"labels that are none", eventMergeRequest, "mr-labels", `"labels": {`, `"labels": {"current": 1, "x": {}, `,
			"changes.labels"},
		{"a comment without text", eventNote, "note-commit", `"note":`, `"note_":`, "object_attributes.note"},
		{"a comment on nothing", eventNote, "note-commit", `_type": "Commit"`, `_type": ""`, "object_attributes.note"},
		{"a comment by nobody", eventNote, "note-commit", `"username": "dev"`, `"username": ""`, "user.username"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := recorded(t, c.file)
			if c.old != "" && !bytes.Contains(body, []byte(c.old)) {
				t.Fatalf("the payload has no %s", c.old)
			}
			body = bytes.Replace(body, []byte(c.old), []byte(c.new), 1)
			_, err := webhook{}.Decode(headers(c.event), body)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Of(err).Message, c.message) {
				t.Errorf("got %v, want Invalid with %q", err, c.message)
			}
		})
	}
}

func TestDecodeHeaders(t *testing.T) {
	for _, wrong := range []string{"https://gitlab.evil.example", "gitlab.example.com",
		"https://gitlab.example.com:8443"} {
		if _, err := (webhook{}).Decode(headers(eventPush, "X-Gitlab-Instance", wrong),
			recorded(t, "push-branch")); !fault.Is(err, fault.Invalid) {
			t.Errorf("instance %s: %v, want an Invalid fault", wrong, err)
		}
	}
	if _, err := (webhook{}).Decode(headers(eventPush, "Idempotency-Key", strings.Repeat("x", 256)),
		recorded(t, "push-branch")); !fault.Is(err, fault.Invalid) {
		t.Errorf("a key that fits no record: %v, want an Invalid fault", err)
	}
	// Otherwise a user with a project could reserve the name of another project's event before it
	// arrives.
	if _, err := (webhook{}).Decode(headers(eventPush, "Idempotency-Key", "sha256:"+strings.Repeat("0", 64)),
		recorded(t, "push-branch")); !fault.Is(err, fault.Invalid) {
		t.Errorf("a key that is made of a body: %v, want an Invalid fault", err)
	}
	spec, err := webhook{}.Decode(headers(eventPush, "X-Gitlab-Instance", "https://GitLab.example.com/below",
		"Authorization", "Bearer x"), recorded(t, "push-branch"))
	if err != nil {
		t.Fatal(err)
	}
	want := event(eventPush, unchanged).Headers
	want["X-Gitlab-Instance"] = "https://GitLab.example.com/below"
	if d := cmp.Diff(want, spec.Headers); d != "" {
		t.Errorf("the headers that are kept:\n%s", d)
	}
}

func TestDecodeReadsTheWholeMessageForASkipCommand(t *testing.T) {
	for file, event := range map[string]string{"push-branch": eventPush, "mr-open-fork": eventMergeRequest,
		"tag-annotated": eventTag} {
		body := bytes.ReplaceAll(recorded(t, file), []byte("It leaked."), []byte("[skip ci]"))
		spec, err := webhook{}.Decode(headers(event), body)
		if err != nil || !spec.Commit.SkipCI || strings.Contains(spec.Commit.Title, "skip") {
			t.Errorf("%s: %+v, %v", file, spec, err)
		}
	}
}

// A GitLab below a path of its host has that path before each project.
func TestDecodeBelowAPath(t *testing.T) {
	body := bytes.ReplaceAll(recorded(t, "push-branch"), []byte("https://gitlab.example.com/acme"),
		[]byte("https://gitlab.example.com/git/acme"))
	spec, err := webhook{}.Decode(headers(eventPush), body)
	if err != nil || spec.Project.URL != "https://gitlab.example.com/git/acme/team/app" ||
		spec.Project.Owner != "acme/team" {
		t.Errorf("%+v, %v", spec, err)
	}
}

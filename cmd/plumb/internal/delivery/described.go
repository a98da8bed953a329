// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// Key is the delivery's key where none is given. Names of PipelineRuns are made of it.
const Key = "plumb"

// Made up: only the service knows the real ones.
const (
	projectID = 1
	forkID    = 2
	userID    = 1
	authorID  = 2
	noteID    = 1
)

// Kind is the kind of a described event.
type Kind int

// The kinds of events that can be described.
const (
	// Opened is a pull request that is opened.
	Opened Kind = iota
	// Labeled is a label that is added to a pull request, the last one of Labels.
	Labeled
	// Commented is a comment on a pull request.
	Commented
	// Pushed is a push to a branch.
	Pushed
	// Tagged is a push of a tag.
	Tagged
)

// OfPull reports whether the event is a pull request's.
func (k Kind) OfPull() bool { return k == Opened || k == Labeled || k == Commented }

// Described is an event that has not happened, with what the user knows of it.
type Described struct {
	Kind Kind
	// Service is github or gitlab, URL the repository's web URL, and HeadURL the one of the
	// repository that the branch of a pull request is in.
	Service, URL, HeadURL string
	// Base is the branch that a pull request targets, or the branch or tag that is pushed. Head is
	// the branch of the pull request.
	Base, Head, DefaultBranch string
	// SHA is the commit, Message its message, and Before what a push replaces.
	SHA, Message, Before string
	// Sender is the user who causes the event. Author is who opened the pull request; the sender
	// did if it is empty.
	Sender, Author string
	// Number and Labels are the pull request's. Comment is the text of the comment.
	Number  int64
	Labels  []string
	Comment string
	// Key is the delivery's.
	Key string
}

// Delivery returns what the service would send, with the fields that decoding the event needs.
func (e Described) Delivery() (Delivery, error) {
	header, body := e.github()
	if e.Service == gitlab.Name {
		header, body = e.gitlab()
	}
	header.Set("Content-Type", "application/json")
	data, err := json.Marshal(body)
	if err != nil {
		return Delivery{}, fmt.Errorf("writing down the event: %w", err)
	}
	return Delivery{Header: header, Body: data}, nil
}

// object is a JSON object.
type object = map[string]any

// project is a repository's path, cut into owner and name.
func (e Described) project() (full, owner, name string) {
	u, err := url.Parse(e.URL)
	if err != nil {
		return "", "", ""
	}
	full = strings.Trim(u.Path, "/")
	return full, path.Dir(full), path.Base(full)
}

func (e Described) title() string { return text.FirstLine(e.Message, len(e.Message)) }

// before returns the commit that a push replaces. For none, services send an id of zeros.
func (e Described) before() string {
	if e.Before == "" {
		return strings.Repeat("0", len(e.SHA))
	}
	return e.Before
}

// headID returns the id of the repository that the branch of the pull request is in.
func (e Described) headID() int {
	if e.HeadURL != e.URL {
		return forkID
	}
	return projectID
}

// authorID returns the id of the user who opened the merge request.
func (e Described) authorID() int {
	if e.Author != "" && !strings.EqualFold(e.Author, e.Sender) {
		return authorID
	}
	return userID
}

func (e Described) github() (http.Header, object) {
	_, owner, name := e.project()
	repository := object{
		"id":             projectID,
		"name":           name,
		"owner":          object{"login": owner},
		"html_url":       e.URL,
		"default_branch": e.DefaultBranch,
	}
	body := object{"repository": repository, "sender": object{"login": e.Sender}}
	header := http.Header{}
	header.Set("X-GitHub-Delivery", e.Key)
	header.Set("X-GitHub-Hook-Installation-Target-Type", "integration")
	var labels []object
	for _, label := range e.Labels {
		labels = append(labels, object{"name": label})
	}
	user, author := object{"login": e.Sender}, object{"login": cmp.Or(e.Author, e.Sender)}
	switch e.Kind {
	case Pushed, Tagged:
		header.Set("X-GitHub-Event", "push")
		body["ref"], body["before"], body["after"], body["pusher"] = e.ref(), e.before(), e.SHA, object{"name": e.Sender}
		body["head_commit"] = object{"id": e.SHA, "message": e.Message, "url": e.URL + "/commit/" + e.SHA}
	case Commented:
		header.Set("X-GitHub-Event", "issue_comment")
		body["action"] = "created"
		body["issue"] = object{
			"number":       e.Number,
			"title":        e.title(),
			"state":        "open",
			"user":         author,
			"labels":       labels,
			"pull_request": object{},
		}
		body["comment"] = object{"id": noteID, "body": e.Comment, "user": user}
	default:
		header.Set("X-GitHub-Event", "pull_request")
		body["action"] = map[Kind]string{Opened: "opened", Labeled: "labeled"}[e.Kind]
		body["pull_request"] = object{"number": e.Number, "title": e.title(), "user": author, "labels": labels,
			"head": object{"ref": e.Head, "sha": e.SHA, "repo": object{"id": e.headID(), "html_url": e.HeadURL}},
			"base": object{"ref": e.Base, "repo": repository}}
	}
	return header, body
}

// ref is what is pushed to.
func (e Described) ref() string {
	if e.Kind == Tagged {
		return "refs/tags/" + e.Base
	}
	return "refs/heads/" + e.Base
}

func (e Described) gitlab() (http.Header, object) {
	full, _, _ := e.project()
	body := object{
		"project": object{"id": projectID, "path_with_namespace": full, "web_url": e.URL, "default_branch": e.DefaultBranch},
		"user":    object{"id": userID, "username": e.Sender},
	}
	header := http.Header{}
	header.Set("Idempotency-Key", e.Key)
	commit := object{"id": e.SHA, "message": e.Message, "url": e.URL + "/-/commit/" + e.SHA}
	var labels []object
	for _, label := range e.Labels {
		labels = append(labels, object{"title": label})
	}
	request := object{"iid": e.Number, "title": e.title(), "author_id": e.authorID(), "state": "opened",
		"source_branch": e.Head, "target_branch": e.Base, "source_project_id": e.headID(), "target_project_id": projectID,
		"source": object{"id": e.headID(), "web_url": e.HeadURL}, "last_commit": commit}
	switch e.Kind {
	case Pushed, Tagged:
		header.Set("X-Gitlab-Event", map[Kind]string{Pushed: "Push Hook", Tagged: "Tag Push Hook"}[e.Kind])
		body["object_kind"] = map[Kind]string{Pushed: "push", Tagged: "tag_push"}[e.Kind]
		body["ref"], body["before"], body["after"], body["checkout_sha"] = e.ref(), e.before(), e.SHA, e.SHA
		body["user_username"], body["commits"] = e.Sender, []object{commit}
	case Commented:
		header.Set("X-Gitlab-Event", "Note Hook")
		body["object_kind"] = "note"
		body["object_attributes"] = object{
			"id":            noteID,
			"author_id":     userID,
			"note":          e.Comment,
			"noteable_type": "MergeRequest", //nolint:misspell // GitLab's word
			"action":        "create",
		}
		request["labels"] = labels
		body["merge_request"] = request
	default:
		header.Set("X-Gitlab-Event", "Merge Request Hook")
		body["object_kind"], body["labels"] = "merge_request", labels
		request["action"] = "open"
		if e.Kind == Labeled {
			request["action"] = "update"
			body["changes"] = object{"labels": object{"previous": labels[:len(labels)-1], "current": labels}}
		}
		body["object_attributes"] = request
	}
	return header, body
}

// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"regexp"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	// typeComment is PaC's event type of a comment that starts a pipeline.
	typeComment = "on-comment"
	// StateOpened is the state of an open merge request.
	StateOpened = "opened"
	// longestNote is how many characters of a comment are read: GitHub's limit. GitLab's own is a
	// million. A few comments of that size a second would exhaust a namespace's storage limit. Its
	// deliveries would be refused, and GitLab would pause the webhook.
	longestNote = 65536
	// OwnNote is the invisible start of our own notes.
	OwnNote = "<!-- plumbline check:"
)

// decodeNote decodes a comment on a merge request or on a commit, in its conversation or on its
// lines. The head of the merge request is read later, as at every service.
func decodeNote(body []byte) (*v1alpha1.GitEventSpec, error) {
	var p payloadNote
	if err := payload.Unmarshal(body, &p); err != nil {
		return nil, err
	}
	spec, err := p.base("note")
	if err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := p.on(spec); err != nil {
		return nil, err
	}
	if err := p.silent(); err != nil {
		return nil, err
	}
	spec.EventType, spec.Action, spec.HappenedAt = typeComment, p.Attributes.Action, p.Attributes.CreatedAt.time()
	spec.Comment = &v1alpha1.Comment{ID: p.Attributes.ID, Body: text.Clean(*p.Attributes.Note)}
	return spec, nil
}

// check returns a fault unless the comment is complete.
func (p *payloadNote) check() error {
	switch {
	case p.User == nil || !ValidName(p.User.Username):
		return payload.Missing("user.username")
	case p.Attributes == nil || p.Attributes.ID <= 0:
		return payload.Missing("object_attributes.id")
	case p.Attributes.Note == nil:
		return payload.Missing("object_attributes.note")
	case p.Attributes.NoteableType == "":
		return payload.Missing("object_attributes.noteable_type")
	}
	return nil
}

// on fills in the merge request or commit of the comment.
func (p *payloadNote) on(spec *v1alpha1.GitEventSpec) error {
	switch p.Attributes.NoteableType {
	case "Commit":
		return p.onCommit(spec)
	case "MergeRequest":
		return p.onMergeRequest(spec)
	}
	return fault.Ignoredf(reasonNotAPullRequest, "a comment on this kind of object starts nothing")
}

func (p *payloadNote) onCommit(spec *v1alpha1.GitEventSpec) error {
	if !provider.IsSHA(p.Attributes.CommitID) {
		return payload.Missing("object_attributes.commit_id")
	}
	spec.Trigger, spec.Sender = v1alpha1.TriggerPush, p.User.Username
	spec.SHA, spec.HeadURL = p.Attributes.CommitID, p.Project.WebURL
	return payload.Check(payload.Text("user.username", p.User.Username, payload.MaxLogin))
}

func (p *payloadNote) onMergeRequest(spec *v1alpha1.GitEventSpec) error {
	if p.MergeRequest == nil {
		return payload.Missing("merge_request")
	}
	if err := p.MergeRequest.check("merge_request", p.payloadCommon, p.User); err != nil {
		return err
	}
	if p.MergeRequest.State != StateOpened {
		return fault.Ignoredf(reasonPullRequestClosed, "a comment on a merge request that is not open starts nothing")
	}
	p.MergeRequest.describe(spec, p.User, p.MergeRequest.Labels)
	return nil
}

// botPattern matches the usernames that GitLab gives to project and group access tokens, and by
// default to service accounts
// (https://docs.gitlab.com/user/project/settings/project_access_tokens/#bot-users-for-projects).
var botPattern = regexp.MustCompile(`^((project|group)_[0-9]+_bot|service_account)(_|[0-9]|$)`)

// silent returns why the comment starts nothing. Bots start nothing, because a bot's comment about
// a run would start the next one. Our own notes start nothing either; a user's token writes them in
// that user's name.
func (p *payloadNote) silent() error {
	switch {
	case p.Attributes.Action != "" && p.Attributes.Action != "create": // versions before 16.11 have no action
		return fault.Ignoredf(reasonUnsupportedAction, "comment action %q starts nothing",
			text.Bytes(text.Clean(p.Attributes.Action), payload.MaxName))
	case p.Attributes.System || provider.IsOwnComment(*p.Attributes.Note) || botPattern.MatchString(p.User.Username):
		return fault.Ignoredf(reasonBot, "the comment of a bot starts nothing")
	case utf8.RuneCountInString(*p.Attributes.Note) > longestNote:
		return fault.Ignoredf(reasonTooLong, "a comment of more than %d characters starts nothing", longestNote)
	case p.Attributes.AuthorID != p.User.ID:
		return fault.Ignoredf(reasonNotTheAuthor, "the comment was sent by another user than its author")
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"regexp"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/provider/text"
)

const (
	// typeComment is PaC's name of the event type of a comment that starts a pipeline.
	typeComment = "on-comment"
	// StateOpened is the state of a merge request that is open.
	StateOpened = "opened"
	// OwnNote is how our own notes begin, unseen by people.
	OwnNote = "<!-- plumbline check:"
)

// decodeNote reads a comment on a merge request, in its conversation or at its lines. The commit is not taken from it but
// asked for, as for every service.
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
	if err := p.elsewhere(); err != nil {
		return nil, err
	}
	if err := p.MergeRequest.check("merge_request", p.payloadCommon, p.User); err != nil {
		return nil, err
	}
	if err := p.silent(); err != nil {
		return nil, err
	}
	p.MergeRequest.describe(spec, p.User, p.MergeRequest.Labels)
	spec.EventType, spec.Action = typeComment, p.Attributes.Action
	spec.Comment = &v1alpha1.Comment{ID: p.Attributes.ID, Body: text.Clean(*p.Attributes.Note)}
	return spec, nil
}

// check tells whether the comment itself is complete.
func (p *payloadNote) check() error {
	switch {
	case p.User == nil || p.User.Username == "":
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

// elsewhere tells why a comment is not about a merge request.
func (p *payloadNote) elsewhere() error {
	switch {
	case p.Attributes.NoteableType == "Commit":
		return fault.Ignoredf("Command", "a comment on a commit can only have a command, and commands are not served yet")
	case p.Attributes.NoteableType != "MergeRequest":
		return fault.Ignoredf("NotAPullRequest", "a comment on this kind of object starts nothing")
	case p.MergeRequest == nil:
		return payload.Missing("merge_request")
	}
	return nil
}

// botPattern is what GitLab names the users of project and group access tokens, and service accounts unless told otherwise
// (https://docs.gitlab.com/user/project/settings/project_access_tokens/#bot-users-for-projects).
var botPattern = regexp.MustCompile(`^((project|group)_[0-9]+_bot|service_account)(_|[0-9]|$)`)

// silent tells why a comment is never acted on. Bots are: what they write about a run would start the next one. So are
// our own notes, which a person's token writes in that person's name.
func (p *payloadNote) silent() error {
	switch {
	case p.Attributes.Action != "" && p.Attributes.Action != "create": // versions before 16.11 do not tell
		return fault.Ignoredf("UnsupportedAction", "comment action %q starts nothing", text.Bytes(text.Clean(p.Attributes.Action), payload.MaxName))
	case p.MergeRequest.State != StateOpened:
		return fault.Ignoredf("PullRequestClosed", "a comment on a merge request that is not open starts nothing")
	case p.Attributes.System || strings.HasPrefix(*p.Attributes.Note, OwnNote) || botPattern.MatchString(p.User.Username):
		return fault.Ignoredf("Bot", "the comment of a bot starts nothing")
	case p.Attributes.AuthorID != p.User.ID:
		return fault.Ignoredf("NotTheAuthor", "the comment was sent by somebody else than its author")
	case provider.IsCommand(*p.Attributes.Note):
		return fault.Ignoredf("Command", "the comment has a command, and commands are not served yet")
	}
	return nil
}

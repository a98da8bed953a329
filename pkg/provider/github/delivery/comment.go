// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	// eventComment is PaC's event type of a comment that starts a pipeline.
	eventComment = "on-comment"
	// StateOpen is the state of an open pull request.
	StateOpen = "open"
)

// actionCreated is a new comment; edits and deletions start nothing.
const actionCreated = "created"

// decodeComment decodes a comment on the conversation of a pull request. The payload has the pull
// request only as an issue: without commit and branch.
func decodeComment(body []byte) (*v1alpha1.GitEventSpec, error) {
	var p payloadComment
	if err := payload.Unmarshal(body, &p); err != nil {
		return nil, err
	}
	if p.Action != actionCreated {
		return nil, fault.Ignoredf(reasonUnsupportedAction, "issue_comment action %q starts nothing", p.Action)
	}
	spec, err := p.base()
	if err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := p.silent(); err != nil {
		return nil, err
	}
	spec.Trigger, spec.EventType = v1alpha1.TriggerPullRequest, eventComment
	spec.Action, spec.Sender = p.Action, p.Comment.User.Login
	spec.PullRequest = &v1alpha1.PullRequest{
		Number: p.Issue.Number,
		Title:  text.FirstLine(p.Issue.Title, payload.MaxTitle),
		Author: p.Issue.User.Login,
		App:    p.Issue.User.bot(),
		Labels: labels(p.Issue.Labels),
	}
	spec.Comment = &v1alpha1.Comment{ID: p.Comment.ID, Body: text.Clean(p.Comment.Body)}
	spec.Body = p.Comment.CreatedAt.identity()
	return spec, nil
}

// check returns a fault unless the comment has what an event needs.
func (p *payloadComment) check() error {
	switch {
	case p.Issue == nil || p.Issue.Number <= 0:
		return payload.Missing("issue.number")
	case p.Issue.User == nil:
		return payload.Missing("issue.user")
	}
	if err := p.Comment.check(p.Sender); err != nil {
		return err
	}
	return payload.Check(payload.Text("issue.user.login", p.Issue.User.Login, payload.MaxLogin))
}

// check returns a fault unless the comment has what an event needs, and its sender too.
func (c *payloadRemark) check(sender *payloadUser) error {
	switch {
	case c == nil || c.ID <= 0:
		return payload.Missing("comment.id")
	case c.User == nil:
		return payload.Missing("comment.user")
	case sender == nil:
		return payload.Missing("sender")
	}
	return payload.Check(payload.Text("comment.user.login", c.User.Login, payload.MaxLogin),
		payload.Text("sender.login", sender.Login, payload.MaxLogin))
}

// silent returns why the comment starts nothing.
func (p *payloadComment) silent() error {
	switch {
	case p.Issue.PullRequest == nil:
		return fault.Ignoredf(reasonNotAPullRequest, "a comment on an issue starts nothing")
	case p.Issue.State != StateOpen:
		return fault.Ignoredf(reasonPullRequestClosed, "a comment on a pull request that is not open starts nothing")
	}
	return p.Comment.silent(p.Sender)
}

// silent returns why the comment starts nothing. Bots start nothing, because a bot's comment about
// a run would start the next one.
func (c *payloadRemark) silent(sender *payloadUser) error {
	switch {
	case c.User.bot() || sender.bot() || provider.IsOwnComment(c.Body):
		return fault.Ignoredf(reasonBot, "the comment of a bot starts nothing")
	case !strings.EqualFold(c.User.Login, sender.Login):
		return fault.Ignoredf(reasonNotTheAuthor, "the comment was sent by another user than its author")
	}
	return nil
}

func (u payloadUser) bot() bool {
	return u.Type == "Bot" || strings.HasSuffix(u.Login, "[bot]")
}

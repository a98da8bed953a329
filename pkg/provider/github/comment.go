// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/provider/text"
)

const (
	// eventComment is PaC's name of the event type of a comment that starts a pipeline.
	eventComment = "on-comment"
	stateOpen    = "open"
)

// actionCreated is a new comment; what becomes of it later starts nothing.
const actionCreated = "created"

// decodeComment reads a comment on the conversation of a pull request. Of the pull request the payload has the issue's
// side only: no commit and no branch.
func decodeComment(body []byte) (*v1alpha1.GitEventSpec, error) {
	var p payloadComment
	if err := payload.Unmarshal(body, &p); err != nil {
		return nil, err
	}
	if p.Action != actionCreated {
		return nil, fault.Ignoredf("UnsupportedAction", "issue_comment action %q starts nothing", p.Action)
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
	spec.Trigger, spec.EventType, spec.Action, spec.Sender = v1alpha1.TriggerPullRequest, eventComment, p.Action, p.Comment.User.Login
	spec.PullRequest = &v1alpha1.PullRequest{
		Number: p.Issue.Number, Title: text.FirstLine(p.Issue.Title, payload.MaxTitle), Author: p.Issue.User.Login, Labels: labels(p.Issue.Labels),
	}
	spec.Comment = &v1alpha1.Comment{ID: p.Comment.ID, Body: text.Clean(p.Comment.Body)}
	spec.Body = p.Comment.CreatedAt.identity()
	return spec, nil
}

// check tells whether the comment has what an event needs.
func (p *payloadComment) check() error {
	switch {
	case p.Issue == nil || p.Issue.Number <= 0:
		return payload.Missing("issue.number")
	case p.Issue.User == nil:
		return payload.Missing("issue.user")
	case p.Comment == nil || p.Comment.ID <= 0:
		return payload.Missing("comment.id")
	case p.Comment.User == nil:
		return payload.Missing("comment.user")
	case p.Sender == nil:
		return payload.Missing("sender")
	}
	return payload.Check(payload.Text("issue.user.login", p.Issue.User.Login, payload.MaxLogin), payload.Text("comment.user.login", p.Comment.User.Login, payload.MaxLogin),
		payload.Text("sender.login", p.Sender.Login, payload.MaxLogin))
}

// silent tells why a comment is never acted on. Bots are: what they write about a run would start the next one.
func (p *payloadComment) silent() error {
	switch {
	case p.Issue.PullRequest == nil:
		return fault.Ignoredf("NotAPullRequest", "a comment on an issue starts nothing")
	case p.Issue.State != stateOpen:
		return fault.Ignoredf("PullRequestClosed", "a comment on a pull request that is not open starts nothing")
	case p.Comment.User.bot() || p.Sender.bot():
		return fault.Ignoredf("Bot", "the comment of a bot starts nothing")
	case !strings.EqualFold(p.Comment.User.Login, p.Sender.Login):
		return fault.Ignoredf("NotTheAuthor", "the comment was sent by somebody else than its author")
	case provider.IsCommand(p.Comment.Body):
		return fault.Ignoredf("Command", "the comment has a command, and commands are not served yet")
	}
	return nil
}

func (u payloadUser) bot() bool {
	return u.Type == "Bot" || strings.HasSuffix(u.Login, "[bot]")
}

// Complete asks for the pull request of a comment. Its author is asked for too: an account may have been renamed, and its
// old name taken by somebody else.
func (r *repository) Complete(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	if event.Comment == nil || event.PullRequest == nil {
		return event, nil
	}
	const what = "reading the pull request of the comment"
	pull, _, err := r.client.PullRequests.Get(ctx, r.owner, r.name, int(event.PullRequest.Number))
	if provider.StatusCode(err) == http.StatusNotFound {
		if err := r.readable(ctx); err != nil {
			return nil, wrapf(what, err)
		}
		return nil, fault.Transientf("PullRequestUnknown", "%s: GitHub does not show it (yet)", what)
	}
	if err != nil {
		return nil, failed(what, err)
	}
	if err := r.believable(event, pull); err != nil {
		return nil, err
	}
	if pull.GetState() != stateOpen {
		return nil, fault.Ignoredf("PullRequestClosed", "pull request #%d was closed before its comment was read", pull.GetNumber())
	}
	out := event.DeepCopy()
	out.SHA, out.BaseRef, out.HeadRef = pull.GetHead().GetSHA(), pull.GetBase().GetRef(), pull.GetHead().GetRef()
	out.HeadURL = text.Bytes(text.Clean(pull.GetHead().GetRepo().GetHTMLURL()), payload.MaxURL)
	out.PullRequest.HeadProjectID = pull.GetHead().GetRepo().GetID()
	out.PullRequest.Author, out.PullRequest.Draft = pull.GetUser().GetLogin(), pull.GetDraft()
	return out, nil
}

// believable refuses an answer that is not about this pull request, or that lacks what decides about it.
func (r *repository) believable(event *v1alpha1.GitEventSpec, pull *gh.PullRequest) error {
	switch {
	case int64(pull.GetNumber()) != event.PullRequest.Number, pull.GetBase().GetRepo().GetID() != r.id,
		pull.GetState() == "", pull.GetUser().GetLogin() == "", pull.GetBase().GetRef() == "", pull.GetHead().GetRef() == "",
		!provider.IsSHA(pull.GetHead().GetSHA()):
		return fault.Transientf("BadAnswer", "reading the pull request of the comment: GitHub's answer is not complete")
	}
	return nil
}

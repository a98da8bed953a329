// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// maxComment is the maximum number of characters of a comment, according to GitHub's error for a
// longer one.
const maxComment = 65536

// PutReply implements provider.Conversation.
func (r *repository) PutReply(ctx context.Context, number int64, c provider.Comment) error {
	body := text.Markdown(c.Text, maxComment, cutMark, text.Runes)
	known, err := r.ownComment(ctx, number, c.Mark)
	if err != nil || known == nil && c.OnlyEdit {
		return err
	}
	if known == nil {
		return r.comment(ctx, "writing the reply", http.MethodPost,
			fmt.Sprintf("repos/%s/%s/issues/%d/comments", r.owner, r.name, number), body)
	}
	if strings.TrimSpace(strings.ReplaceAll(known.GetBody(), "\r\n", "\n")) == strings.TrimSpace(body) {
		return nil
	}
	const what = "updating the reply"
	err = r.comment(ctx, what, http.MethodPatch,
		fmt.Sprintf("repos/%s/%s/issues/comments/%d", r.owner, r.name, known.GetID()), body)
	if provider.StatusCode(err) == http.StatusNotFound {
		return fault.Transientf(reasonCommentGone, "%s: it was deleted meanwhile", what)
	}
	return err
}

// ownComment returns the oldest comment on the pull request that begins with the mark and was
// written by our account; nil if there is none. GitHub lists the oldest first. Comments of other
// users may be large, so no page stays in memory.
func (r *repository) ownComment(ctx context.Context, number int64, mark string) (*gh.IssueComment, error) {
	const what = "looking the reply up"
	login, err := r.login(ctx)
	if err != nil {
		return nil, wrapf(what, err)
	}
	opts := &gh.IssueListCommentsOptions{ListOptions: gh.ListOptions{PerPage: perPage}}
	for range maxPages {
		part, resp, err := r.client.Issues.ListComments(ctx, r.owner, r.name, int(number), opts)
		if err != nil {
			return nil, limits.Failed(what, err)
		}
		if part == nil {
			return nil, noAnswer(what)
		}
		for _, comment := range part {
			if strings.HasPrefix(comment.GetBody(), mark) && strings.EqualFold(comment.GetUser().GetLogin(), login) &&
				comment.GetID() > 0 {
				return comment, nil
			}
		}
		if resp.NextPage == 0 {
			return nil, nil
		}
		opts.Page = resp.NextPage
	}
	return nil, fault.Operatorf(reasonTooMany, "%s: GitHub lists more than %d comments", what, maxPages*perPage)
}

// botLogin returns the App's account. It is read each time, because an App may be renamed.
func (r *repository) botLogin(ctx context.Context) (string, error) {
	app, err := r.runs.minter.asApp()
	if err != nil {
		return "", err
	}
	const what = "asking for the App's name"
	self, _, err := app.Apps.Get(ctx, "")
	switch {
	case err != nil:
		return "", limits.Failed(what, err)
	case self.GetID() != r.app || self.GetSlug() == "":
		return "", noAnswer(what)
	}
	return self.GetSlug() + "[bot]", nil
}

func (r *repository) comment(ctx context.Context, what, method, path, body string) error {
	req, err := r.client.NewRequest(method, path, &gh.IssueComment{Body: &body})
	if err != nil {
		return limits.Failed(what, err)
	}
	var written gh.IssueComment
	_, err = r.client.Do(ctx, req, &written)
	switch {
	case provider.StatusCode(err) == http.StatusForbidden && fault.Is(limits.Failed(what, err), fault.Operator):
		return fmt.Errorf(
			"%w (to write comments %s needs the permission Pull requests: write, and the conversation must not be locked)",
			limits.Failed(what, err), r.caller,
		)
	case err != nil:
		return limits.Failed(what, err)
	case written.GetID() == 0: // it may exist: the next attempt looks it up
		f := fault.Transientf(provider.ReasonBadAnswer, "%s: the answer holds no id", what)
		f.Unknown = true
		return f
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/delivery"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// Complete reads where the commit of a comment is, or the pull request of a comment or of a re-run.
// It reads the author again too: an account may have been renamed, and another user may have its
// old name.
func (r *repository) Complete(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	if event.Rerun != nil && event.Rerun.AppID != r.app {
		return nil, fault.Ignoredf(reasonAnotherApp, "the check is of another GitHub App")
	}
	if event.Incoming != nil && event.Rerun == nil {
		return provider.AtTip(ctx, r, event)
	}
	if event.Comment == nil && event.Rerun == nil {
		return event, nil
	}
	if event.PullRequest == nil {
		return r.ofPush(ctx, event)
	}
	return r.ofPull(ctx, event)
}

// ofPull reads the pull request of a comment or of a re-run.
func (r *repository) ofPull(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	const what = "reading the event's pull request"
	pull, _, err := r.client.PullRequests.Get(ctx, r.owner, r.name, int(event.PullRequest.Number))
	if provider.StatusCode(err) == http.StatusNotFound {
		if err := r.readable(ctx); err != nil {
			return nil, wrapf(what, err)
		}
		return nil, fault.Transientf(reasonPullRequestUnknown, "%s: GitHub does not show it (yet)", what)
	}
	if err != nil {
		return nil, limits.Failed(what, err)
	}
	if err := r.checkAnswer(event, pull); err != nil {
		return nil, err
	}
	if pull.GetState() != delivery.StateOpen {
		return nil, fault.Ignoredf(reasonPullRequestClosed,
			"pull request #%d was closed before its comment or re-run was read", pull.GetNumber())
	}
	return described(event, pull), nil
}

// Versions returns none, because GitHub signs its deliveries.
func (r *repository) Versions(context.Context, *v1alpha1.GitEventSpec) ([]git.Version, error) {
	return nil, nil
}

// ofPush completes a comment on a commit. A re-run of a push needs nothing.
func (r *repository) ofPush(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	if event.Comment == nil {
		return event, nil
	}
	return r.completeOnCommit(ctx, event)
}

// described returns the event completed from the pull request.
func described(event *v1alpha1.GitEventSpec, pull *gh.PullRequest) *v1alpha1.GitEventSpec {
	out := event.DeepCopy()
	out.SHA, out.BaseRef, out.HeadRef = pull.GetHead().GetSHA(), pull.GetBase().GetRef(), pull.GetHead().GetRef()
	out.HeadURL = text.Bytes(text.Clean(pull.GetHead().GetRepo().GetHTMLURL()), payload.MaxURL)
	out.PullRequest.HeadProjectID = pull.GetHead().GetRepo().GetID()
	out.PullRequest.Author, out.PullRequest.Draft = pull.GetUser().GetLogin(), pull.GetDraft()
	out.PullRequest.App = pull.GetUser().GetType() == "Bot"
	if event.Rerun != nil { // its delivery has only the number
		out.PullRequest.Title = text.FirstLine(pull.GetTitle(), payload.MaxTitle)
		for _, l := range pull.Labels[:min(len(pull.Labels), payload.MaxLabels)] {
			out.PullRequest.Labels = append(out.PullRequest.Labels, text.Bytes(text.Clean(l.GetName()), payload.MaxName))
		}
	}
	return out
}

// checkAnswer refuses an answer that is about another pull request, or that lacks a field that
// decisions depend on.
func (r *repository) checkAnswer(event *v1alpha1.GitEventSpec, pull *gh.PullRequest) error {
	switch {
	case int64(pull.GetNumber()) != event.PullRequest.Number, pull.GetBase().GetRepo().GetID() != r.id,
		pull.GetState() == "", pull.GetUser().GetLogin() == "", pull.GetBase().GetRef() == "", pull.GetHead().GetRef() == "",
		!provider.IsSHA(pull.GetHead().GetSHA()):
		return fault.Transientf(provider.ReasonBadAnswer, "reading the event's pull request: GitHub's answer is not complete")
	}
	return nil
}

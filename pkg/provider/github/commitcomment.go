// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// completeOnCommit completes a comment on a commit with the commit that its ref points to, or that
// of the default branch if it has none. GitHub accepts heads/NAME and tags/NAME in place of a
// commit, and follows an annotated tag (https://docs.github.com/rest/commits/commits#get-a-commit).
func (r *repository) completeOnCommit(
	ctx context.Context, event *v1alpha1.GitEventSpec,
) (*v1alpha1.GitEventSpec, error) {
	ref, err := r.refOf(ctx, event)
	if err != nil {
		return nil, err
	}
	what := "reading which commit " + ref + " points to"
	commit, _, err := r.client.Repositories.GetCommit(ctx, r.owner, r.name,
		url.PathEscape(strings.TrimPrefix(ref, "refs/")), &gh.ListOptions{PerPage: 1})
	switch code := provider.StatusCode(err); {
	case code == http.StatusNotFound, code == http.StatusUnprocessableEntity:
		if err := r.readable(ctx); err != nil {
			return nil, wrapf(what, err)
		}
		return nil, fault.Ignoredf(reasonRefNotFound, "nothing was done: %s has no %s", r.fullName(), ref)
	case err != nil:
		return nil, r.unavailable(ctx, what, ref, err)
	case !provider.IsSHA(commit.GetSHA()) || commit.GetCommit() == nil:
		return nil, noAnswer(what)
	}
	out := event.DeepCopy()
	message := commit.GetCommit().GetMessage()
	out.BaseRef, out.HeadRef, out.SHA = ref, ref, commit.GetSHA()
	out.Commit = &v1alpha1.Commit{
		Title:  text.FirstLine(message, payload.MaxTitle),
		URL:    text.Bytes(text.Clean(commit.GetHTMLURL()), payload.MaxURL),
		SkipCI: provider.SkipsCI(message),
	}
	return out, nil
}

// refOf returns the event's ref, or the current default branch.
func (r *repository) refOf(ctx context.Context, event *v1alpha1.GitEventSpec) (string, error) {
	if event.BaseRef != "" {
		return event.BaseRef, nil
	}
	described, err := r.describe(ctx)
	switch {
	case err != nil:
		return "", err
	case described.GetDefaultBranch() == "":
		return "", noAnswer("reading the default branch")
	}
	return "refs/heads/" + described.GetDefaultBranch(), nil
}

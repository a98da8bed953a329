// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// Supersedes implements provider.History.
func (r *repository) Supersedes(ctx context.Context, event *v1alpha1.GitEventSpec) (string, error) {
	return provider.Supersedes(ctx, r, event)
}

// Tip implements provider.Tips.
func (r *repository) Tip(ctx context.Context, event *v1alpha1.GitEventSpec) (string, error) {
	return provider.Tip(ctx, r, event)
}

// PullHead implements provider.Refs.
func (r *repository) PullHead(ctx context.Context, number int) (string, error) {
	const what = "reading the pull request's head"
	pull, _, err := r.client.PullRequests.Get(ctx, r.owner, r.name, number)
	if provider.StatusCode(err) == http.StatusNotFound {
		return "", r.absent(ctx, what)
	}
	if err != nil {
		return "", limits.Failed(what, err)
	}
	return provider.Commit(what, "GitHub", pull.GetHead().GetSHA())
}

// BranchTip implements provider.Refs.
func (r *repository) BranchTip(ctx context.Context, branch string) (string, error) {
	const what = "reading where the branch is now"
	ref, _, err := r.client.Git.GetRef(ctx, r.owner, r.name, "heads/"+branch)
	if provider.StatusCode(err) == http.StatusNotFound {
		return "", r.absent(ctx, what)
	}
	if err != nil {
		return "", limits.Failed(what, err)
	}
	return provider.Commit(what, "GitHub", ref.GetObject().GetSHA())
}

// Left implements provider.Refs by a comparison of the two commits
// (https://docs.github.com/rest/commits/commits#compare-two-commits). A 404 proves nothing: the
// commit may be gone or not there yet, or the histories may have nothing in common.
func (r *repository) Left(ctx context.Context, _, tip, sha string) (bool, error) {
	const what = "comparing with where the branch is now"
	diff, _, err := r.client.Repositories.CompareCommits(ctx, r.owner, r.name, sha, tip, &gh.ListOptions{PerPage: 1})
	if provider.StatusCode(err) == http.StatusNotFound {
		return false, r.absent(ctx, what)
	}
	if err != nil {
		return false, limits.Failed(what, err)
	}
	switch diff.GetStatus() {
	case "ahead", "identical":
		return false, nil
	case "diverged", "behind":
		return true, nil
	}
	return false, noAnswer(what)
}

// absent interprets a 404: nil when the repository itself can be read.
func (r *repository) absent(ctx context.Context, what string) error {
	if err := r.readable(ctx); err != nil {
		return wrapf(what, err)
	}
	return nil
}

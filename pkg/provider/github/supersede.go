// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// Supersedes compares the event with the pull request's head or the branch's tip of this moment.
func (r *repository) Supersedes(ctx context.Context, event *v1alpha1.GitEventSpec) (string, error) {
	if err := provider.CheckSHA(event.SHA); err != nil {
		return "", err
	}
	if event.PullRequest != nil {
		return r.otherHead(ctx, int(event.PullRequest.Number), event.SHA)
	}
	branch, isBranch := strings.CutPrefix(event.BaseRef, "refs/heads/")
	if event.Trigger != v1alpha1.TriggerPush || !isBranch {
		return "", nil
	}
	return r.otherTip(ctx, branch, event.SHA)
}

// Tip returns the pull request's head or the branch's tip of this moment.
func (r *repository) Tip(ctx context.Context, event *v1alpha1.GitEventSpec) (string, error) {
	if event.PullRequest != nil {
		return r.head(ctx, int(event.PullRequest.Number))
	}
	branch, isBranch := strings.CutPrefix(event.BaseRef, "refs/heads/")
	if !isBranch {
		return "", nil
	}
	return r.tip(ctx, branch)
}

func (r *repository) otherHead(ctx context.Context, number int, sha string) (string, error) {
	head, err := r.head(ctx, number)
	return provider.Other(head, sha), err
}

// head returns "" for a pull request that is not there.
func (r *repository) head(ctx context.Context, number int) (string, error) {
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

// otherTip asks for the tip first: the comparison is then of two commits, whatever the branch's
// name looks like.
func (r *repository) otherTip(ctx context.Context, branch, sha string) (string, error) {
	tip, err := r.tip(ctx, branch)
	if tip = provider.Other(tip, sha); err != nil || tip == "" {
		return "", err
	}
	return r.unlessHeld(ctx, sha, tip)
}

// tip returns "" for a branch that is not there.
func (r *repository) tip(ctx context.Context, branch string) (string, error) {
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

// unlessHeld returns the tip unless its history holds the commit
// (https://docs.github.com/rest/commits/commits#compare-two-commits). 404 is the answer for a
// commit that is gone, or not there yet, and for histories that have nothing in common: it does not
// tell which.
func (r *repository) unlessHeld(ctx context.Context, sha, tip string) (string, error) {
	const what = "comparing with where the branch is now"
	diff, _, err := r.client.Repositories.CompareCommits(ctx, r.owner, r.name, sha, tip, &gh.ListOptions{PerPage: 1})
	if provider.StatusCode(err) == http.StatusNotFound {
		return "", r.absent(ctx, what)
	}
	if err != nil {
		return "", limits.Failed(what, err)
	}
	switch diff.GetStatus() {
	case "ahead", "identical":
		return "", nil
	case "diverged", "behind":
		return tip, nil
	}
	return "", noAnswer(what)
}

// absent interprets a 404: nil when the repository itself can be read.
func (r *repository) absent(ctx context.Context, what string) error {
	if err := r.readable(ctx); err != nil {
		return wrapf(what, err)
	}
	return nil
}

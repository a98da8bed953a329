// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"net/http"
	"slices"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
)

// Supersedes compares the event with the merge request's head or the branch's tip of this moment.
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

// Tip returns the merge request's head or the branch's tip of this moment.
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

// head returns "" for a merge request that is not there.
func (r *repository) head(ctx context.Context, number int) (string, error) {
	const what = "reading the merge request's head"
	mr, _, err := r.Client.MergeRequests.GetMergeRequest(r.Path, number, nil, gl.WithContext(ctx))
	if provider.StatusCode(err) == http.StatusNotFound {
		return "", r.Nobody(ctx, what)
	}
	if err != nil {
		return "", provider.Failed(what, err)
	}
	return provider.Commit(what, "GitLab", mr.SHA)
}

func (r *repository) otherTip(ctx context.Context, branch, sha string) (string, error) {
	tip, err := r.tip(ctx, branch)
	if tip = provider.Other(tip, sha); err != nil || tip == "" {
		return "", err
	}
	return r.unlessHeld(ctx, sha, branch, tip)
}

// tip returns "" for a branch that is not there.
func (r *repository) tip(ctx context.Context, branch string) (string, error) {
	const what = "reading where the branch is now"
	now, _, err := r.Client.Branches.GetBranch(r.Path, branch, gl.WithContext(ctx))
	if provider.StatusCode(err) == http.StatusNotFound {
		return "", r.Nobody(ctx, what)
	}
	if err != nil {
		return "", provider.Failed(what, err)
	}
	if now.Commit == nil {
		return "", api.NoAnswer(what)
	}
	return provider.Commit(what, "GitLab", now.Commit.ID)
}

// unlessHeld returns the tip unless the branch holds the commit
// (https://docs.gitlab.com/api/commits/#list-references-for-a-commit). 404 is the answer for a
// commit that is gone, or not there yet: it does not tell which.
func (r *repository) unlessHeld(ctx context.Context, sha, branch, tip string) (string, error) {
	const what = "listing the branches that hold the commit"
	opts := &gl.GetCommitRefsOptions{Type: gl.Ptr("branch")}
	held, err := api.List(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.CommitRef, *gl.Response, error) {
		return r.Client.Commits.GetCommitRefs(r.Path, sha, opts, page...)
	})
	if provider.StatusCode(err) == http.StatusNotFound {
		return "", r.Nobody(ctx, what)
	}
	if err != nil {
		return "", provider.Failed(what, err)
	}
	if slices.ContainsFunc(held, func(ref *gl.CommitRef) bool { return ref.Name == branch }) {
		return "", nil
	}
	return tip, nil
}

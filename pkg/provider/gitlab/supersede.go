// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"net/http"
	"slices"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
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
	const what = "reading the merge request's head"
	mr, _, err := r.Client.MergeRequests.GetMergeRequest(r.Path, number, nil, gl.WithContext(ctx))
	if provider.StatusCode(err) == http.StatusNotFound {
		return "", r.Absent(ctx, what)
	}
	if err != nil {
		return "", provider.Failed(what, err)
	}
	return provider.Commit(what, "GitLab", mr.SHA)
}

// BranchTip implements provider.Refs.
func (r *repository) BranchTip(ctx context.Context, branch string) (string, error) {
	now, err := r.at(ctx, "branch", branch)
	if err != nil || now == nil {
		return "", err
	}
	return now.ID, nil
}

// Left implements provider.Refs by the branches that contain the commit
// (https://docs.gitlab.com/api/commits/#list-references-for-a-commit). A 404 does not decide: the
// commit is gone or not there yet.
func (r *repository) Left(ctx context.Context, branch, _, sha string) (bool, error) {
	const what = "listing the branches that hold the commit"
	opts := &gl.GetCommitRefsOptions{Type: gl.Ptr("branch")}
	refs, err := api.List(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.CommitRef, *gl.Response, error) {
		return r.Client.Commits.GetCommitRefs(r.Path, sha, opts, page...)
	})
	if provider.StatusCode(err) == http.StatusNotFound {
		return false, r.Absent(ctx, what)
	}
	if err != nil {
		return false, provider.Failed(what, err)
	}
	return !slices.ContainsFunc(refs, func(ref *gl.CommitRef) bool { return ref.Name == branch }), nil
}

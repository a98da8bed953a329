// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"net/http"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
)

// maxCommitFiles is how many files of a commit GitLab lists, unless its administrators allow more
// (https://docs.gitlab.com/administration/diff_limits/). Nothing else shows that more were changed.
const maxCommitFiles = 1000

// reasonNoMergeRequest is the reason of a merge request that GitLab does not show.
const reasonNoMergeRequest = "PullRequestUnknown"

// Changed lists the files that an event changes: of a merge request, of a push since the commit
// that it replaced, or, for a new branch or tag, of its head commit.
func (r *repository) Changed(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Changes, error) {
	if err := provider.CheckSHA(event.SHA); err != nil {
		return git.Changes{}, err
	}
	switch {
	case event.PullRequest != nil:
		return r.changedByMergeRequest(ctx, int(event.PullRequest.Number))
	case event.Before == "":
		return r.changedByCommit(ctx, event.SHA)
	}
	return r.changedByPush(ctx, event.Before, event.SHA)
}

// changedByMergeRequest waits until GitLab has computed the changes, which it does after it has
// created a merge request. A "+" after their number means that GitLab does not list all
// (https://docs.gitlab.com/api/merge_requests/). Then it compares the commits, which older versions
// do without a limit.
func (r *repository) changedByMergeRequest(ctx context.Context, number int) (git.Changes, error) {
	const what = "listing the merge request's files"
	mr, err := r.mergeRequest(ctx, what, number)
	if err != nil {
		return git.Changes{}, err
	}
	if mr.DiffRefs.HeadSha == "" {
		return git.Changes{}, fault.Transientf(reasonMergeRequestNotPrepared, "%s: GitLab is still computing them", what)
	}
	truncated := strings.HasSuffix(mr.ChangesCount, "+")
	if truncated {
		all, err := r.between(ctx, mr.DiffRefs.BaseSha, mr.DiffRefs.HeadSha)
		if provider.StatusCode(err) != http.StatusNotFound {
			return all, err
		}
	}
	files, err := api.List(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.MergeRequestDiff, *gl.Response, error) {
		part, resp, err := r.Client.MergeRequests.ListMergeRequestDiffs(r.Path, number, nil, page...)
		for _, f := range part {
			f.Diff = "" // unused; freed before the next page is read
		}
		return part, resp, err
	})
	if err != nil {
		return git.Changes{}, provider.Failed(what, err)
	}
	var all []*gl.Diff
	for _, f := range files {
		all = append(all,
			&gl.Diff{NewPath: f.NewPath, NewFile: f.NewFile, RenamedFile: f.RenamedFile, DeletedFile: f.DeletedFile})
	}
	return changes(what, all, truncated)
}

// mergeRequest reads a merge request of the project.
func (r *repository) mergeRequest(ctx context.Context, what string, number int) (*gl.MergeRequest, error) {
	mr, _, err := r.Client.MergeRequests.GetMergeRequest(r.Path, number, nil, gl.WithContext(ctx))
	if provider.StatusCode(err) == http.StatusNotFound {
		if err := r.Absent(ctx, what); err != nil {
			return nil, err
		}
		return nil, fault.Transientf(reasonNoMergeRequest, "%s: GitLab does not show merge request !%d (yet)", what, number)
	}
	if err != nil {
		return nil, provider.Failed(what, err)
	}
	if mr.IID != number {
		return nil, api.NoAnswer(what)
	}
	return mr, nil
}

func (r *repository) changedByCommit(ctx context.Context, sha string) (git.Changes, error) {
	const what = "listing the commit's files"
	files, err := api.List(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.Diff, *gl.Response, error) {
		part, resp, err := r.Client.Commits.GetCommitDiff(r.Path, sha, nil, page...)
		for _, f := range part {
			f.Diff = ""
		}
		return part, resp, err
	})
	if err != nil {
		return git.Changes{}, r.Unavailable(ctx, what, sha, err)
	}
	return changes(what, files, len(files) >= maxCommitFiles)
}

// changedByPush compares the trees. A commit that a forced push replaced may be gone. Then it lists
// the head commit's own files, marked as incomplete.
func (r *repository) changedByPush(ctx context.Context, before, after string) (git.Changes, error) {
	all, err := r.between(ctx, before, after)
	if provider.StatusCode(err) != http.StatusNotFound {
		return all, err
	}
	own, err := r.changedByCommit(ctx, after)
	own.Truncated = true
	return own, err
}

// between lists the files that differ between two commits; one answer has all files.
func (r *repository) between(ctx context.Context, from, to string) (git.Changes, error) {
	for _, sha := range []string{from, to} {
		if err := provider.CheckSHA(sha); err != nil {
			return git.Changes{}, err
		}
	}
	const what = "comparing two commits"
	diff, _, err := r.Client.Repositories.Compare(r.Path,
		&gl.CompareOptions{From: &from, To: &to, Straight: gl.Ptr(true)}, gl.WithContext(ctx))
	if err != nil {
		return git.Changes{}, provider.Failed(what, err)
	}
	if diff.Diffs == nil {
		return git.Changes{}, api.NoAnswer(what)
	}
	return changes(what, diff.Diffs, diff.CompareTimeout)
}

func changes(what string, files []*gl.Diff, truncated bool) (git.Changes, error) {
	out := git.Changes{Truncated: truncated}
	for _, f := range files {
		if f.NewPath == "" {
			return git.Changes{}, api.NoAnswer(what)
		}
		add(&out, f)
	}
	return out, nil
}

func add(to *git.Changes, f *gl.Diff) {
	switch {
	case f.NewFile:
		to.Added = append(to.Added, f.NewPath)
	case f.DeletedFile:
		to.Deleted = append(to.Deleted, f.NewPath)
	case f.RenamedFile:
		to.Renamed = append(to.Renamed, f.NewPath)
	default:
		to.Modified = append(to.Modified, f.NewPath)
	}
}

// Pulls lists the merge requests of a commit. For a commit of the default branch GitLab lists the
// merged one that added it
// (https://docs.gitlab.com/api/commits/#list-merge-requests-associated-with-a-commit).
func (r *repository) Pulls(ctx context.Context, sha string) ([]git.Pull, error) {
	if err := provider.CheckSHA(sha); err != nil {
		return nil, err
	}
	const what = "listing the commit's merge requests"
	found, err := api.List(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.MergeRequest, *gl.Response, error) {
		return r.Client.Commits.ListMergeRequestsByCommit(r.Path, sha, page...)
	})
	if err != nil {
		return nil, r.Unavailable(ctx, what, sha, err)
	}
	var pulls []git.Pull
	for _, mr := range found {
		switch {
		case mr.IID <= 0 || mr.State == "":
			return nil, fault.Transientf(provider.ReasonBadAnswer, "%s: GitLab answered with one that has no number or state", what)
		case int64(mr.TargetProjectID) != r.ID:
		case mr.TargetBranch == "" || mr.SourceBranch == "":
			return nil, fault.Transientf(provider.ReasonBadAnswer, "%s: GitLab answered with one that has no branches", what)
		default:
			pulls = append(pulls, pullOf(mr))
		}
	}
	return pulls, nil
}

func pullOf(mr *gl.MergeRequest) git.Pull {
	return git.Pull{
		Number: int64(mr.IID), Open: mr.State == delivery.StateOpened, Merged: mr.State == stateMerged, SHA: mr.SHA,
		BaseRef: mr.TargetBranch, HeadRef: mr.SourceBranch, HeadProjectID: int64(mr.SourceProjectID),
	}
}

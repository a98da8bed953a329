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
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// The maximum numbers of files that GitHub lists, over all pages
// (https://docs.github.com/rest/pulls/pulls#list-pull-requests-files,
// https://docs.github.com/rest/commits/commits).
const (
	maxPullFiles   = 3000
	maxCommitFiles = 3000
	perPage        = 100
	maxPages       = 100
)

// Changed lists the files that an event changes: of a pull request, of a merge group compared with
// its base branch, of a push since the commit that it replaced, or, for a new branch or tag, of its
// head commit.
func (r *repository) Changed(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Changes, error) {
	if err := provider.CheckSHA(event.SHA); err != nil {
		return git.Changes{}, err
	}
	switch {
	case event.PullRequest != nil:
		return r.changedByPull(ctx, int(event.PullRequest.Number))
	case event.Before == "":
		return r.changedByCommit(ctx, event.SHA)
	case event.Trigger == v1alpha1.TriggerMergeGroup:
		return r.changedByGroup(ctx, event)
	}
	return r.changedByPush(ctx, event.Before, event.SHA)
}

func (r *repository) changedByPull(ctx context.Context, number int) (git.Changes, error) {
	const what = "listing the pull request's files"
	var files []*gh.CommitFile
	opts := &gh.ListOptions{PerPage: perPage}
	ctx = provider.Pages(ctx)
	for range maxPages {
		part, resp, err := r.client.PullRequests.ListFiles(ctx, r.owner, r.name, number, opts)
		if provider.StatusCode(err) == http.StatusNotFound {
			if err := r.readable(ctx); err != nil {
				return git.Changes{}, wrapf(what, err)
			}
			return git.Changes{}, fault.Transientf(reasonPullRequestUnknown, "%s: GitHub does not show it (yet)", what)
		}
		if err != nil {
			return git.Changes{}, limits.Failed(what, err)
		}
		if part == nil {
			return git.Changes{}, noAnswer(what)
		}
		files = append(files, withoutPatches(part)...)
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return changes(what, files, maxPullFiles)
}

func (r *repository) changedByCommit(ctx context.Context, sha string) (git.Changes, error) {
	const what = "listing the commit's files"
	var files []*gh.CommitFile
	opts := &gh.ListOptions{PerPage: perPage}
	ctx = provider.Pages(ctx)
	for range maxPages {
		commit, resp, err := r.client.Repositories.GetCommit(ctx, r.owner, r.name, sha, opts)
		if err != nil {
			return git.Changes{}, r.unavailable(ctx, what, sha, err)
		}
		if commit.GetSHA() != sha {
			return git.Changes{}, noAnswer(what)
		}
		files = append(files, withoutPatches(commit.Files)...)
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return changes(what, files, maxCommitFiles)
}

// withoutPatches drops the unused patches of a page before the next one is read.
func withoutPatches(files []*gh.CommitFile) []*gh.CommitFile {
	for _, f := range files {
		f.Patch = nil
	}
	return files
}

func changes(what string, files []*gh.CommitFile, limit int) (git.Changes, error) {
	out := git.Changes{Truncated: len(files) >= limit}
	for _, f := range files {
		if f.GetFilename() == "" || f.GetStatus() == "" {
			return git.Changes{}, noAnswer(what)
		}
		switch f.GetStatus() {
		case "added", "copied":
			out.Added = append(out.Added, f.GetFilename())
		case "removed":
			out.Deleted = append(out.Deleted, f.GetFilename())
		case "renamed":
			out.Renamed = append(out.Renamed, f.GetFilename())
		case "unchanged":
		default:
			out.Modified = append(out.Modified, f.GetFilename())
		}
	}
	return out, nil
}

// noAnswer returns the fault of a body without the requested fields. go-github takes it for an
// empty list or object, but it does not mean "none".
func noAnswer(what string) error {
	return fault.Transientf(provider.ReasonBadAnswer, "%s: GitHub's answer does not hold what was asked for", what)
}
